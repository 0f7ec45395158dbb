// SPDX-License-Identifier: MIT OR Apache-2.0
//! One curve: per stretch of time the smallest and the largest reading, and which of them came first.

/// The readings of one stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Smallest reading.
    pub min: f32,
    /// Largest reading.
    pub max: f32,
    /// Whether the largest came after the smallest.
    pub rises: bool,
}

impl Extent {
    fn of(value: f32) -> Extent {
        Extent { min: value, max: value, rises: true }
    }

    fn put(&mut self, value: f32) {
        if value > self.max {
            (self.max, self.rises) = (value, true);
        } else if value < self.min {
            (self.min, self.rises) = (value, false);
        }
    }

    /// With a stretch that follows.
    #[must_use]
    pub fn then(self, next: Extent) -> Extent {
        let rises = match (next.max > self.max, next.min < self.min) {
            (true, false) => true,
            (false, true) => false,
            (true, true) => next.rises,
            (false, false) => self.rises,
        };
        Extent { min: self.min.min(next.min), max: self.max.max(next.max), rises }
    }

    /// The two readings in order of time.
    pub fn in_order(self) -> (f32, f32) {
        if self.rises { (self.min, self.max) } else { (self.max, self.min) }
    }
}

/// A curve that begins in some stretch.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    from: usize,
    extents: Vec<Option<Extent>>,
}

impl Track {
    /// An empty curve that begins in a stretch.
    pub(super) fn from(at: usize) -> Track {
        Track { from: at, extents: Vec::new() }
    }

    /// Adds a reading of a stretch, the last one or a later one.
    pub(super) fn put(&mut self, at: usize, value: f32) {
        let index = at.saturating_sub(self.from);
        if index >= self.extents.len() {
            self.extents.resize(index + 1, None);
        }
        if let Some(extent) = self.extents.get_mut(index) {
            match extent {
                Some(extent) => extent.put(value),
                None => *extent = Some(Extent::of(value)),
            }
        }
    }

    /// Merges pairs of stretches.
    pub(super) fn thin(&mut self) {
        // Pairs begin at even numbers.
        if self.from % 2 == 1 {
            self.extents.insert(0, None);
            self.from -= 1;
        }
        let pair = |pair: &[Option<Extent>]| match (pair[0], pair.get(1).copied().flatten()) {
            (Some(first), Some(second)) => Some(first.then(second)),
            (first, second) => first.or(second),
        };
        self.extents = self.extents.chunks(2).map(pair).collect();
        self.from /= 2;
    }

    /// Stretches with a reading, in order of time.
    pub(super) fn extents(&self) -> impl Iterator<Item = (usize, Extent)> + '_ {
        self.extents.iter().enumerate().filter_map(|(at, extent)| Some((self.from + at, (*extent)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_remembers_the_order_of_its_extremes() {
        let check = |values: &[f32], expect: (f32, f32)| {
            let mut extent = Extent::of(values[0]);
            values.iter().for_each(|value| extent.put(*value));
            assert_eq!(extent.in_order(), expect, "{values:?}");
        };
        check(&[1.0], (1.0, 1.0));
        check(&[1.0, 3.0, 2.0], (1.0, 3.0));
        check(&[3.0, 1.0, 2.0], (3.0, 1.0));
        check(&[2.0, 3.0, 1.0], (3.0, 1.0));
        let (falls, rises) = (Extent { min: 1.0, max: 3.0, rises: false }, Extent { min: 2.0, max: 2.5, rises: true });
        assert_eq!(falls.then(rises), falls);
        assert_eq!(rises.then(falls).in_order(), (3.0, 1.0));
    }
}

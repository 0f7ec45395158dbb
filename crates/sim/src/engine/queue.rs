// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events to come, in order of (time, sequence), and alarms that are mostly set anew before they ring.

mod later;

use super::Ticket;
use crate::arena::{BlockId, WbId};
use crate::block::Way;
use later::Later;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// What is due at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// A process goes on.
    Wake(Ticket),
    /// A device completes a request.
    IoDone(BlockId, u32),
    /// A window of writeback throttling ends.
    WbtWindow(BlockId),
    /// A wb's bandwidth is estimated once more after its last completion.
    Bandwidth(WbId),
    /// The alarm of a wb's flusher.
    Alarm(WbId),
}

/// When a sleeper wants to be woken that is mostly woken earlier, by others, and then sets its alarm anew.
/// Never more than one event of it waits in the queue, and no later than it is wanted: an event that comes
/// too early goes back to the place in the order of events that the alarm was given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alarm {
    /// When, and which place in the order of events.
    pub(super) wanted: Option<(u64, u64)>,
    /// When the next event of it is due.
    queued: Option<u64>,
}

impl Alarm {
    /// Nobody is to be woken any more.
    pub(crate) fn stop(&mut self) {
        self.wanted = None;
    }
}

/// Events to come. Most come in order by themselves - what is due at once, and what one way of one device
/// completes - and wait in lines. The others are put in order as late as possible: by spans of time first, and
/// within a span when the clock comes to it.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Due at the moment they were pushed.
    ready: VecDeque<Entry>,
    /// What is due in the present span, in order. What is pushed into it is mostly due first or last: little moves.
    near: VecDeque<Entry>,
    /// What is due in later spans. If there is anything, something is in the present span.
    later: Later,
    /// Completions by device and way; the first of each is among the others as well.
    completions: Vec<VecDeque<Entry>>,
    sequence: u64,
}

/// An event: when, in which order among those of the same time, and what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) at: u64,
    pub(super) sequence: u64,
    pub(super) due: Due,
}

impl Entry {
    /// Time and sequence as one number, which is compared without a branch.
    fn key(&self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The line of what a device completes one way.
fn line(device: BlockId, way: Way) -> usize {
    device.0 as usize * 3 + way as usize
}

impl Queue {
    pub(crate) fn push(&mut self, at: u64, due: Due) {
        let sequence = self.reserve();
        self.push_reserved(at, sequence, due);
    }

    /// Pushes what is due now. `now` never goes back.
    pub(crate) fn push_now(&mut self, now: u64, due: Due) {
        let sequence = self.reserve();
        self.ready.push_back(Entry { at: now, sequence, due });
    }

    /// Pushes a completion of a device.
    pub(crate) fn push_completion(&mut self, at: u64, device: BlockId, way: Way, slot: u32) {
        let entry = Entry { at, sequence: self.reserve(), due: Due::IoDone(device, slot) };
        let (number, last) = (line(device, way), line(device, Way::Flush));
        if self.completions.len() <= last {
            self.completions.resize_with(last + 1, VecDeque::new);
        }
        let waits = match self.completions[number].back() {
            Some(last) if last.at > at => return self.push_entry(entry),
            waits => waits.is_some(),
        };
        self.completions[number].push_back(entry);
        if !waits {
            self.push_entry(entry);
        }
    }

    /// A place in the order of events for one that is pushed later, or never.
    pub(super) fn reserve(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(super) fn push_reserved(&mut self, at: u64, sequence: u64, due: Due) {
        self.push_entry(Entry { at, sequence, due });
    }

    fn push_entry(&mut self, entry: Entry) {
        if self.near.is_empty() {
            self.later.come_to(entry.at);
        }
        let Some(entry) = self.later.keep(entry) else { return };
        if self.near.back().is_none_or(|last| *last < entry) {
            self.near.push_back(entry);
        } else {
            let at = self.near.partition_point(|other| *other < entry);
            self.near.insert(at, entry);
        }
    }

    /// Sets an alarm; `due` is what its events are.
    pub(crate) fn set_alarm(&mut self, alarm: &mut Alarm, at: u64, due: Due) {
        let sequence = self.reserve();
        alarm.wanted = Some((at, sequence));
        self.queue_alarm(alarm, due);
    }

    /// An event of an alarm has come; whether it is the one that was wanted.
    pub(super) fn alarm_came(&mut self, alarm: &mut Alarm, at: u64, sequence: u64, due: Due) -> bool {
        if alarm.queued == Some(at) {
            alarm.queued = None;
        }
        if alarm.wanted == Some((at, sequence)) {
            alarm.wanted = None;
            return true;
        }
        self.queue_alarm(alarm, due);
        false
    }

    fn queue_alarm(&mut self, alarm: &mut Alarm, due: Due) {
        if let Some((at, sequence)) = alarm.wanted
            && alarm.queued.is_none_or(|queued| queued > at)
        {
            alarm.queued = Some(at);
            self.push_reserved(at, sequence, due);
        }
    }

    /// The next event.
    #[inline]
    pub(super) fn peek(&self) -> Option<Entry> {
        match (self.ready.front(), self.near.front()) {
            (Some(ready), Some(near)) => Some(*if ready < near { ready } else { near }),
            (ready, near) => ready.or(near).copied(),
        }
    }

    /// Takes out what [`Queue::peek`] said.
    #[inline]
    pub(super) fn pop(&mut self, next: &Entry) {
        if self.ready.front() == Some(next) {
            self.ready.pop_front();
            return;
        }
        self.near.pop_front();
        if self.near.is_empty() {
            self.later.next_span(&mut self.near);
        }
        if let Due::IoDone(device, _) = next.due
            && let Some(following) = self.following(device, next)
        {
            self.push_entry(following);
        }
    }

    /// The completion that waits behind one that has come.
    fn following(&mut self, device: BlockId, next: &Entry) -> Option<Entry> {
        let lines = line(device, Way::Read)..=line(device, Way::Flush);
        let line = self.completions.get_mut(lines).into_iter().flatten().find(|line| line.front() == Some(next))?;
        line.pop_front();
        line.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_core::scenario::Random;
    use std::collections::BTreeSet;

    #[test]
    fn events_come_in_the_order_of_time_and_sequence_however_far_off_they_are() {
        let mut random = Random::new(5);
        let (mut queue, mut plain, mut now) = (Queue::default(), BTreeSet::new(), 0);
        for round in 0..40_000 {
            // It grows and shrinks in turn, and runs empty.
            if random.below(10) < if round % 4000 < 2000 { 6 } else { 3 } {
                let reach = 1 << random.below(32);
                let at = now + random.below(reach);
                queue.push(at, Due::WbtWindow(BlockId(0)));
                plain.insert((at, queue.sequence));
                continue;
            }
            let next = queue.peek();
            assert_eq!(next.map(|next| (next.at, next.sequence)), plain.pop_first(), "round {round}");
            if let Some(next) = next {
                now = next.at;
                queue.pop(&next);
            }
        }
    }
}

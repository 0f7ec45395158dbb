// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events to come, in order of (time, sequence), and alarms that are mostly set anew before they expire.

mod later;

use super::Ticket;
use crate::arena::{BdiId, BlockId, WbId};
use crate::block::{WAYS, Way};
use later::Later;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Kinds of event.
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
    /// The timer of a bdi in laptop mode.
    LaptopMode(BdiId),
}

/// An alarm for a sleeper that other processes mostly wake earlier, and that sets its alarm anew each time. At most
/// one of its events is in the queue, due no later than the alarm. An event that comes too early goes back into the
/// queue, at the place in the order that the alarm was given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alarm {
    /// Time of the alarm, and its place in the order of events.
    wanted: Option<(u64, u64)>,
    /// Time of its next event in the queue.
    queued: Option<u64>,
}

impl Alarm {
    /// Whether an event at this time and place in the order is the one the alarm was set for.
    pub(super) fn is_wanted(&self, at: u64, sequence: u64) -> bool {
        self.wanted == Some((at, sequence))
    }

    /// Cancels the alarm: its event wakes no process.
    pub(crate) fn stop(&mut self) {
        self.wanted = None;
    }
}

/// Events to come. Most are pushed in order already and wait in lines: events due at once, and completions of one
/// way of one device. The others are sorted as late as possible: by span of time first, and within a span when the
/// clock reaches it.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Events that were due at the moment they were pushed.
    ready: VecDeque<Entry>,
    /// Events of the present span, in reverse order: the next one is last. Events pushed into it are mostly due
    /// soon, so few entries move.
    near: Vec<Entry>,
    /// Events of later spans. If there are any, the present span is not empty.
    later: Later,
    /// Completions by device and way.
    lines: Vec<VecDeque<Entry>>,
    /// Time and sequence of the first of each line.
    heads: Vec<u128>,
    /// The line with the earliest first event.
    next_line: usize,
    /// The next event of all.
    next: Option<Next>,
    sequence: u64,
}

/// An event: its time, its place among those of the same time, and its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) at: u64,
    pub(super) sequence: u64,
    pub(super) due: Due,
}

/// Where an event waits.
#[derive(Clone, Copy, Debug)]
enum Place {
    Ready,
    Near,
    Line,
}

/// The next event: its time, its place in the order, and where it waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) at: u64,
    pub(super) sequence: u64,
    place: Place,
}

impl Next {
    /// Whether it comes before another time and place in the order.
    #[inline]
    pub(super) fn is_before(&self, at: u64, sequence: u64) -> bool {
        key(self.at, self.sequence) < key(at, sequence)
    }
}

/// Later than any event.
const NEVER: u128 = u128::MAX;

/// Time and sequence as one number, which is compared without a branch.
fn key(at: u64, sequence: u64) -> u128 {
    u128::from(at) << 64 | u128::from(sequence)
}

impl Entry {
    fn key(&self) -> u128 {
        key(self.at, self.sequence)
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

/// Number of the line for completions of one way of a device.
fn line(device: BlockId, way: Way) -> usize {
    device.0 as usize * WAYS + way as usize
}

impl Queue {
    pub(crate) fn push(&mut self, at: u64, due: Due) {
        let sequence = self.reserve();
        self.push_reserved(at, sequence, due);
    }

    /// Pushes an event that is due now. `now` never goes back.
    pub(crate) fn push_now(&mut self, now: u64, due: Due) {
        let sequence = self.reserve();
        self.ready.push_back(Entry { at: now, sequence, due });
        self.came(now, sequence, Place::Ready);
    }

    /// Notes a pushed event: it is the next one unless another is earlier.
    #[inline]
    fn came(&mut self, at: u64, sequence: u64, place: Place) {
        if !self.next.is_some_and(|next| next.is_before(at, sequence)) {
            self.next = Some(Next { at, sequence, place });
        }
    }

    /// Pushes a completion of a device.
    pub(crate) fn push_completion(&mut self, at: u64, device: BlockId, way: Way, slot: u32) {
        let sequence = self.reserve();
        let number = line(device, way);
        if self.lines.len() <= number {
            let lines = (device.0 as usize + 1) * WAYS;
            self.lines.resize_with(lines, VecDeque::new);
            self.heads.resize(lines, NEVER);
        }
        let due = Due::IoDone(device, slot);
        match self.lines[number].back() {
            // A flush of nothing may be done before an earlier one: it waits among the other events.
            Some(last) if last.at > at => return self.push_reserved(at, sequence, due),
            Some(_) => {}
            None => {
                self.heads[number] = key(at, sequence);
                if self.heads[number] < self.heads[self.next_line] {
                    self.next_line = number;
                }
                self.came(at, sequence, Place::Line);
            }
        }
        self.lines[number].push_back(Entry { at, sequence, due });
    }

    /// Finds the line with the earliest first event: a machine has few lines.
    fn find_next_line(&mut self) {
        let (mut first, mut next) = (NEVER, 0);
        for (number, head) in self.heads.iter().enumerate() {
            if *head < first {
                (first, next) = (*head, number);
            }
        }
        self.next_line = next;
    }

    /// Reserves a place in the order of events, for an event that is pushed later or never.
    pub(super) fn reserve(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(super) fn push_reserved(&mut self, at: u64, sequence: u64, due: Due) {
        if self.near.is_empty() {
            self.later.come_to(at);
        }
        self.came(at, sequence, Place::Near);
        let entry = Entry { at, sequence, due };
        if self.later.is_later(at) {
            self.later.keep(entry);
            return;
        }
        let key = entry.key();
        let place = self.near.partition_point(|other| other.key() > key);
        self.near.insert(place, entry);
    }

    /// Sets an alarm; `due` is the kind of its events.
    pub(crate) fn set_alarm(&mut self, alarm: &mut Alarm, at: u64, due: Due) {
        let sequence = self.reserve();
        alarm.wanted = Some((at, sequence));
        self.queue_alarm(alarm, due);
    }

    /// Handles an event of an alarm. Returns whether it is the one the alarm was set for.
    pub(super) fn alarm_came(&mut self, alarm: &mut Alarm, at: u64, sequence: u64, due: Due) -> bool {
        if alarm.queued == Some(at) {
            alarm.queued = None;
        }
        if alarm.is_wanted(at, sequence) {
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
    pub(super) fn next(&self) -> Option<Next> {
        self.next
    }

    /// Kind of the event that [`Queue::next`] returned.
    #[inline]
    pub(super) fn due(&self, next: Next) -> Option<Due> {
        let entry = match next.place {
            Place::Ready => self.ready.front(),
            Place::Near => self.near.last(),
            Place::Line => self.lines[self.next_line].front(),
        };
        entry.map(|entry| entry.due)
    }

    /// Takes out the event that [`Queue::next`] returned.
    #[inline]
    pub(super) fn pop(&mut self, next: Next) -> Option<Due> {
        let entry = match next.place {
            Place::Ready => self.ready.pop_front(),
            Place::Near => {
                let entry = self.near.pop();
                if self.near.is_empty() {
                    self.later.next_span(&mut self.near);
                }
                entry
            }
            Place::Line => {
                let line = &mut self.lines[self.next_line];
                let entry = line.pop_front();
                self.heads[self.next_line] = line.front().map_or(NEVER, Entry::key);
                self.find_next_line();
                entry
            }
        };
        self.find_next();
        entry.map(|entry| entry.due)
    }

    /// Finds the next event: the first at one of the places.
    fn find_next(&mut self) {
        let key = |entry: Option<&Entry>| entry.map_or(NEVER, Entry::key);
        let (ready, near) = (key(self.ready.front()), key(self.near.last()));
        let line = self.heads.get(self.next_line).copied().unwrap_or(NEVER);
        let (first, place) = if near < ready { (near, Place::Near) } else { (ready, Place::Ready) };
        let (first, place) = if line < first { (line, Place::Line) } else { (first, place) };
        let (at, sequence) = ((first >> 64) as u64, first as u64);
        self.next = (first != NEVER).then_some(Next { at, sequence, place });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::Random;
    use std::collections::BTreeSet;

    #[test]
    fn events_come_in_the_order_of_time_and_sequence_however_far_off_they_are() {
        let mut random = Random::new(5);
        let (mut queue, mut plain, mut now) = (Queue::default(), BTreeSet::new(), 0);
        let mut reserved = VecDeque::new();
        for round in 0..40_000 {
            // It grows and shrinks in turn, and runs empty.
            if random.below(10) < if round % 4000 < 2000 { 6 } else { 3 } {
                let reach = 1 << random.below(32);
                let (at, due) = (now + random.below(reach), Due::WbtWindow(BlockId(0)));
                let pushed = match random.below(8) {
                    0 | 1 => {
                        queue.push_completion(at, BlockId(random.below(3) as u32), Way::Write, 0);
                        (at, queue.sequence)
                    }
                    2 => {
                        queue.push_now(now, due);
                        (now, queue.sequence)
                    }
                    // A place that was reserved before, mostly at the time of another event.
                    3 if reserved.len() > 3 => {
                        let (at, sequence): (u64, u64) = reserved.pop_front().expect("a place");
                        queue.push_reserved(at.max(now + 1), sequence, due);
                        (at.max(now + 1), sequence)
                    }
                    4 => {
                        reserved.push_back((plain.last().map_or(at, |(at, _)| *at), queue.reserve()));
                        continue;
                    }
                    _ => {
                        queue.push(at, due);
                        (at, queue.sequence)
                    }
                };
                plain.insert(pushed);
                continue;
            }
            let next = queue.next();
            assert_eq!(next.map(|next| (next.at, next.sequence)), plain.pop_first(), "round {round}");
            if let Some(next) = next {
                now = next.at;
                assert!(queue.pop(next).is_some());
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers about disks that stood still, computed again from requests in flight and requests completed.

use super::raw::{Raw, over, seconds};
use super::trace::is_called;
use floodline_analysis::report::{Evidence, Finding};
use floodline_record::id::Entity;
use floodline_record::traced::waits::Operation;

/// First and last sample of a standstill.
type Span = (usize, usize);

impl Raw {
    fn completed(&self, (from, to): Span) -> f64 {
        self.between(from, to, |row| row.reads.unwrap_or_default().0 + row.writes.unwrap_or_default().0)
    }

    fn per_second(&self, (from, to): Span) -> f64 {
        over(self.completed((from, to)), seconds(&self.samples[from], &self.samples[to]))
    }

    fn in_flight(&self, at: usize) -> u64 {
        self.samples[at].disks.get(self.disk()).and_then(|row| row.in_flight).unwrap_or_default().0
    }

    /// The samples just before a standstill and just after it, to twice its length, without the interval next to it.
    fn beside(&self, (from, to): Span) -> Option<(Span, Span)> {
        let length = 2.0 * seconds(&self.samples[from], &self.samples[to]) + 1e-6;
        let since = to + 1;
        let last = self.samples.len() - 1;
        let before = self.before((from, to))?;
        let end = (since..=last).rev().find(|at| seconds(&self.samples[since], &self.samples[*at]) <= length)?;
        Some((before, (since, end)))
    }

    /// Whether the disk had requests until the last sample and completed none, after it had worked for a second or since the first sample.
    fn hangs(&self, (from, to): Span) -> bool {
        let is_still = |at: usize| self.in_flight(at) > 0 && self.in_flight(at + 1) > 0;
        let has_begun = |before: Span| {
            self.completed((from - 1, from)) > 0.0
                && self.length_of(&before) >= 0.95
                && self.per_second(before) * self.length_of(&(from, to)) >= 20.0
        };
        to + 1 == self.samples.len()
            && (from..to).all(is_still)
            && self.completed((from, to)) <= 0.0
            && self.before((from, to)).map_or(self.length_of(&(from, to)) >= 5.0, has_begun)
    }

    /// The samples just before a standstill, to twice its length, without the interval next to it.
    fn before(&self, (from, to): Span) -> Option<Span> {
        let length = 2.0 * seconds(&self.samples[from], &self.samples[to]) + 1e-6;
        let until = from.checked_sub(1)?;
        let first = (0..=until).find(|at| seconds(&self.samples[*at], &self.samples[until]) <= length)?;
        Some((first, until))
    }

    /// Whether the disk had requests and completed less than a tenth of what it did before and after, for as long as it did not.
    fn stands_still(&self, span: Span) -> bool {
        let Some((before, after)) = self.beside(span) else { return false };
        let usual = self.per_second(before).min(self.per_second(after));
        let is_still = |at: usize| {
            self.in_flight(at) > 0 && self.in_flight(at + 1) > 0 && self.per_second((at, at + 1)) < 0.1 * usual
        };
        let is_long = |of: Span| self.length_of(&of) >= 0.95 * self.length_of(&span);
        is_long(before)
            && is_long(after)
            && usual * self.length_of(&span) >= 20.0
            && (span.0..span.1).all(is_still)
            && !is_still(span.0 - 1)
            && !is_still(span.1)
    }

    /// Standstills of the disk, as long as each can be.
    fn standstills(&self) -> Vec<Span> {
        let mut found = Vec::new();
        let (mut from, last) = (0, self.samples.len() - 1);
        while from < last {
            let is_one = |to: &usize| {
                let is_one = self.stands_still((from, *to)) || self.hangs((from, *to));
                seconds(&self.samples[from], &self.samples[*to]) >= 0.95 && is_one
            };
            match (from + 1..=last).rev().find(is_one) {
                Some(to) => {
                    found.push((from, to));
                    from = to;
                }
                None => from += 1,
            }
        }
        found
    }

    fn length_of(&self, span: &Span) -> f64 {
        seconds(&self.samples[span.0], &self.samples[span.1])
    }

    /// The longest wait of a process in these times: one that a trace has, or states of an uninterruptible sleep.
    fn longest_wait(&self, spans: &[Span], label: &str) -> Option<f64> {
        let times =
            spans.iter().map(|(from, to)| (self.samples[*from].time.monotonic.0, self.samples[*to].time.monotonic.0));
        let times: Vec<(u64, u64)> = times.collect();
        let of_file = [Operation::Fsync, Operation::Fdatasync, Operation::Range];
        let traced =
            self.slow_syncs().filter(|(_, wait)| is_called(&wait.who, label) && of_file.contains(&wait.operation));
        let traced = traced.filter(|(end, wait)| {
            let began = end.0.saturating_sub(wait.lasted.0);
            times.iter().any(|(from, to)| {
                let common = end.0.min(*to).saturating_sub(began.max(*from));
                2 * common >= wait.lasted.0
            })
        });
        let traced: Vec<f64> = traced.map(|(_, wait)| wait.lasted.0 as f64 / 1e9).collect();
        let process = label.split_once(" in ").map_or(label, |(process, _)| process);
        let is_it = |entity: &Entity| matches!(entity, Entity::Process { .. }) && entity.label() == process;
        let ids: Vec<_> = self.entities.iter().filter(|(_, entity)| is_it(entity)).map(|(id, _)| *id).collect();
        let is_asleep = |at: usize| {
            let states = ids.iter().filter_map(|id| self.samples[at].processes.get(*id)?.state);
            states.into_iter().any(|state| state.0 == u64::from(b'D'))
        };
        let slept = spans.iter().filter(|(from, to)| (*from..=*to).all(is_asleep));
        slept.map(|span| self.length_of(span)).chain(traced).reduce(f64::max)
    }
}

/// Computes a number about a disk that stood still; `None` if it is about something else.
pub(crate) fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    if finding.rule != "stalled-device" {
        return None;
    }
    let spans = raw.standstills();
    let longest = spans
        .iter()
        .copied()
        .reduce(|one, other| if raw.length_of(&other) > raw.length_of(&one) { other } else { one })?;
    let last = spans.last().copied().filter(|span| raw.hangs(*span));
    // One that has not ended is told first.
    let longest = last.unwrap_or(longest);
    let all = |of: fn(&Raw, usize, usize) -> f64| spans.iter().map(|(from, to)| of(raw, *from, *to)).sum::<f64>();
    let in_all: f64 = spans.iter().map(|span| raw.length_of(span)).sum();
    Some(match evidence.name.as_str() {
        name if name.starts_with("Longest standstill of ") && last.is_none() => raw.length_of(&longest),
        name if name.starts_with("Standstill until the last sample of ") => raw.length_of(&last?),
        name if name.starts_with("Standstills of ") => spans.len() as f64,
        "Length of all standstills" => in_all,
        "Start of the longest, after the first sample" | "Start of the last one, after the first sample" => {
            seconds(raw.first(), &raw.samples[longest.0])
        }
        "Most requests in flight in the longest" | "Most requests in flight in the last one" => {
            (longest.0..=longest.1).map(|at| raw.in_flight(at)).max()? as f64
        }
        "Completed just before" => raw.per_second(raw.before(longest)?),
        "Completed in the longest" | "Completed in the last one" => raw.per_second(longest),
        "Completed just after" => raw.per_second(raw.beside(longest)?.1),
        "Standstill time with a task waiting for I/O" => {
            over(all(|raw, from, to| raw.pressed(from, to)), in_all).min(1.0)
        }
        "Steal time in the standstills" => {
            let stolen = all(|raw, from, to| raw.host(from, to, |row| row.cpu_steal.unwrap_or_default().0));
            let cpu = all(|raw, from, to| {
                raw.host(from, to, |row| {
                    let times = [row.cpu_user, row.cpu_system, row.cpu_idle, row.cpu_iowait, row.cpu_steal];
                    times.into_iter().flatten().map(|time| time.0).sum()
                })
            });
            over(stolen, cpu)
        }
        name => raw.longest_wait(&spans, name.strip_prefix("Longest wait in a standstill, ")?)?,
    })
}

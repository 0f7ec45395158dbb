// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that holds the BPF programs. It reads only files that no container can write: tracefs, the kernel's
//! types, and its own files below `/proc/self`.

use super::wire::{Kind, Moment, pack, receive, send, unpack};
use crate::root::HostRoot;
use crate::trace::{Tracer, Traces};
use floodline_record::facts::HostFacts;
use floodline_record::record::Record;
use floodline_record::sample::HostRow;
use floodline_record::units::Pages;
use std::io;
use std::os::unix::net::UnixStream;

/// Serves one observing process until that process ends.
pub(super) fn serve(stream: &UnixStream) -> io::Result<()> {
    let root = HostRoot::live().map_err(io::Error::other)?;
    let mut tracer: Option<Tracer> = None;
    loop {
        let (kind, content) = match receive(stream) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            received => received?,
        };
        let mut records = Vec::new();
        match kind {
            Kind::Start => tracer = Some(Tracer::start(&root, &facts(&content)?)),
            Kind::Turn => {
                if let Some(tracer) = &mut tracer {
                    tracer.turn();
                }
            }
            Kind::Collect => {
                if let Some(tracer) = &mut tracer {
                    let Moment { at, thresholds } = Moment::unpack(&content);
                    let (nr_dirty_threshold, nr_dirty_background_threshold) =
                        thresholds.map(|(thresh, bg_thresh)| (Pages(thresh), Pages(bg_thresh))).unzip();
                    let host = HostRow { nr_dirty_threshold, nr_dirty_background_threshold, ..HostRow::default() };
                    tracer.collect(&root, at, &host, &mut records);
                }
            }
            Kind::Stop => {
                tracer = None;
                continue;
            }
        }
        let content = if records.is_empty() { Vec::new() } else { pack(&records)? };
        send(stream, kind, &content)?;
    }
}

fn facts(content: &[u8]) -> io::Result<HostFacts> {
    let facts = unpack(content)?.into_iter().find_map(|record| match record {
        Record::Facts(facts) => Some(*facts),
        _ => None,
    });
    Ok(facts.unwrap_or_default())
}

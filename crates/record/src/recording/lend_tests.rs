// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a decoder lends is what it gives, on whole and on damaged files, and a window makes the same of both.

use super::Decoder;
use super::frame::PREAMBLE;
use super::tests::{encode, made};
use crate::metric::Row;
use crate::record::{Record, Sink};
use crate::sample::{HostRow, Table, TableVisitorMut};
use crate::window::Window;
use proptest::prelude::*;
use std::ops::ControlFlow;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn samples_that_are_lent_are_those_that_are_given(
        bytes in proptest::collection::vec(any::<u8>(), 0..900),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut file = encode(&made(&bytes));
        let start = PREAMBLE + 64;
        for (at, change) in changes {
            if file.len() > start {
                let at = start + at.index(file.len() - start);
                file[at] ^= change;
            }
        }
        let Ok(given) = Decoder::new(&file[..]) else { return Ok(()) };
        let given: Vec<Record> = given.map_while(Result::ok).collect();
        let (mut lent, mut window) = (Vec::new(), Window::default());
        let _ = Decoder::new(&file[..]).unwrap().lend(|record| {
            let Ok(()) = window.record(record);
            lent.push(record.clone());
            ControlFlow::Continue(())
        });
        prop_assert_eq!(&lent, &given);
        // Without what the decoder knows of rows that stand still.
        let forgotten: Vec<Record> = given.into_iter().map(|record| match record {
            Record::Sample(mut sample) => {
                let Ok(()) = sample.visit_mut(&mut Forget);
                Record::Sample(sample)
            }
            other => other,
        }).collect();
        prop_assert_eq!(format!("{window:?}"), format!("{:?}", Window::from_records(&forgotten)));
    }
}

/// Leaves the rows of a table and nothing else.
struct Forget;

impl TableVisitorMut for Forget {
    type Error = std::convert::Infallible;

    fn host(&mut self, _: &mut HostRow) -> Result<(), Self::Error> {
        Ok(())
    }

    fn table<R: Row + 'static>(&mut self, table: &mut Table<R>) -> Result<(), Self::Error> {
        if table.was_read() {
            *table = Table::read(table.rows().to_vec());
        }
        Ok(())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Screens of hand-made machines at 80×24 and other sizes, and what keys do to them.

use super::*;
use floodline_analysis::diagnose::diagnose;
use floodline_testkit::Fixture;
use floodline_testkit::incidents::{INCIDENTS, dirty_cliff, starved_budget};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

fn look(fixture: &Fixture) -> Look {
    let records = fixture.records();
    let minute = Window::from_records(&records);
    let mut now = Window::default();
    let samples = records.iter().filter(|record| matches!(record, floodline_record::record::Record::Sample(_))).count();
    let mut seen = 0;
    for record in &records {
        use floodline_record::record::{Record, Sink};
        if matches!(record, Record::Sample(_)) {
            seen += 1;
            if seen == samples - 1 {
                now.begin_again();
            }
        }
        let Ok(()) = now.record(record);
    }
    let position =
        Position { second: 10.0, of_seconds: 20.0, sample: samples, of_samples: samples, thinned: 1, is_live: false };
    let report = diagnose(&minute, None);
    Look::new("box17".to_owned(), position, &now, &minute, Some(report))
}

fn screen(look: &Look, state: &mut State, width: u16, height: u16) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw(&mut buffer, look, state);
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(|y| line(y) + "\n").collect()
}

fn pressed(look: &Look, keys: &str) -> State {
    let mut state = State::new(false);
    for key in keys.chars() {
        let key = match key {
            '\n' => Key::Enter,
            '\t' => Key::Tab,
            '→' => Key::Right,
            '↓' => Key::Down,
            key => Key::Char(key),
        };
        state.key(key, look);
        // Drawing keeps rows and columns within what there is.
        screen(look, &mut state, 80, 24);
    }
    state
}

#[test]
fn the_verdict_of_a_starved_host() {
    let look = look(&starved_budget());
    insta::assert_snapshot!(screen(&look, &mut State::new(true), 80, 24));
}

#[test]
fn the_cgroups_of_a_starved_host() {
    let look = look(&starved_budget());
    insta::assert_snapshot!(screen(&look, &mut pressed(&look, "2"), 80, 24));
}

#[test]
fn the_devices_of_a_cliff_with_the_source_of_a_number() {
    let look = look(&dirty_cliff());
    insta::assert_snapshot!(screen(&look, &mut pressed(&look, "3→→→?"), 80, 24));
}

#[test]
fn the_writers_of_a_cliff() {
    let look = look(&dirty_cliff());
    insta::assert_snapshot!(screen(&look, &mut pressed(&look, "5"), 80, 24));
}

#[test]
fn every_incident_has_every_screen_at_every_size() {
    for incident in INCIDENTS {
        for fixture in [(incident.make)(), (incident.make)().one_look()] {
            let look = look_or_one(&fixture);
            for keys in ["1", "2", "3", "4", "5", "2?", "h", "3/x", "2s", "2<<", "5>"] {
                for (width, height) in [(80, 24), (40, 10), (200, 60), (20, 5), (60, 15)] {
                    screen(&look, &mut pressed(&look, keys), width, height);
                }
            }
        }
    }
    screen(&Look::default(), &mut State::new(true), 80, 24);
}

fn look_or_one(fixture: &Fixture) -> Look {
    let window = fixture.window();
    if window.samples > 1 {
        return look(fixture);
    }
    Look::new(String::new(), Position::default(), &window, &window, None)
}

#[test]
fn a_filter_keeps_the_rows_that_have_it_and_esc_shows_all() {
    let look = look(&starved_budget());
    let all = pressed(&look, "2").rows(&look).len();
    let mut state = pressed(&look, "2/writer-1\n");
    assert!(!state.rows(&look).is_empty() && state.rows(&look).len() < all);
    state.key(Key::Esc, &look);
    assert_eq!(state.rows(&look).len(), all);
}

#[test]
fn sorting_by_a_column_puts_the_largest_first_and_again_the_smallest() {
    let look = look(&starved_budget());
    let values = |keys: &str| -> Vec<f64> {
        pressed(&look, keys).rows(&look).iter().filter_map(|row| row.cells[1].value).collect()
    };
    let (down, up) = (values("2→s"), values("2→ss"));
    assert!(down.is_sorted_by(|a, b| a >= b), "{down:?}");
    assert!(up.is_sorted_by(|a, b| a <= b), "{up:?}");
}

#[test]
fn keys_ask_the_program_for_what_the_state_cannot_do() {
    let look = look(&dirty_cliff());
    let check = |key: Key, action: Action| assert_eq!(State::new(true).key(key, &look), action);
    check(Key::Char('q'), Action::Quit);
    check(Key::Char('j'), Action::Step(1));
    check(Key::Char('K'), Action::Step(-10));
    check(Key::Char(' '), Action::Pause);
    let mut state = pressed(&look, "t42s");
    assert_eq!(state.key(Key::Enter, &look), Action::GoTo("42s".to_owned()));
    // A letter that is typed into a filter is no command.
    assert_eq!(pressed(&look, "2/").key(Key::Char('q'), &look), Action::Draw);
}

#[test]
fn without_colour_nothing_is_coloured_and_marks_say_the_same() {
    use ratatui_core::style::Color;
    let look = look(&starved_budget());
    let mut state = pressed(&look, "2");
    let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
    draw(&mut buffer, &look, &mut state);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(screen(&look, &mut state, 80, 24).lines().any(|line| line.starts_with('!') || line.starts_with('*')));
}

#[test]
fn every_column_says_its_file_and_its_kernel_function() {
    let look = look(&dirty_cliff());
    for table in &look.tables {
        for column in &table.columns {
            assert!(!column.source.is_empty() && column.function.contains("()"), "{}", column.head);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A look and a state as cells of a screen: a head of four lines, a body, the whole of the chosen row, and the keys. Colour
//! never carries a meaning alone: a row over its limit is bold and marked with `!`, one that is slowed with `*`.

use super::{Asked, Cell, Column, Look, Popup, Question, Row, Screen, State, Weight};
use crate::doctor;
use crate::export::rfc3339;
use crate::layout::{columns, shortened, wrap};
use floodline_analysis::report::Severity;
use floodline_record::human;
use floodline_record::units::Nanos;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

/// Lines above the body.
const HEAD: u16 = 4;
/// Lines below it.
const FOOT: u16 = 2;
/// Lines of the verdict that can be walked through, at most.
pub(super) const VERDICT_LINES_MAX: usize = 200;
/// Columns that the first cell of a row keeps.
const NAME_MIN: usize = 16;
/// Columns that a text at the end of a row keeps.
const TEXT_MIN: usize = 11;
/// Smallest screen that anything can be shown on.
const SMALLEST: (u16, u16) = (40, 10);

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Draws the whole screen.
pub fn draw(buffer: &mut Buffer, look: &Look, state: &mut State) {
    let area = buffer.area;
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        put(buffer, area, 0, "The window is too small: 40 columns and 10 lines are needed.", PLAIN);
        return;
    }
    head(buffer, area, look, state);
    let body = Rect { y: HEAD, height: area.height - HEAD - FOOT, ..area };
    match state.screen {
        Screen::Verdict => verdict(buffer, body, look, state),
        _ => table(buffer, body, look, state),
    }
    foot(buffer, area, look, state);
    match state.popup {
        Some(Popup::Help) => popup(buffer, area, "Keys", &help()),
        Some(Popup::Source) => popup(buffer, area, "Where this number comes from", &source(look, state)),
        None => {}
    }
}

/// A line of text in a row of the screen, cut at its edge.
fn put(buffer: &mut Buffer, area: Rect, row: u16, text: &str, style: Style) {
    if row < area.bottom() {
        buffer.set_stringn(area.x, row, text, usize::from(area.width), style);
    }
}

fn colored(state: &State, color: Color) -> Style {
    if state.color { Style::new().fg(color) } else { PLAIN }
}

/// Blue and orange are told apart by all eyes; red and green are not.
fn style_of(state: &State, weight: Weight) -> Style {
    match weight {
        Weight::Plain => PLAIN,
        Weight::Slowed => colored(state, Color::Yellow),
        Weight::Over => colored(state, Color::Red).add_modifier(Modifier::BOLD),
    }
}

fn clock(wall_ns: u64) -> String {
    rfc3339(Nanos(wall_ns))
        .and_then(|text| text.get(11..19).map(str::to_owned))
        .unwrap_or_else(|| "??:??:??".to_owned())
}

fn head(buffer: &mut Buffer, area: Rect, look: &Look, state: &State) {
    let width = usize::from(area.width);
    let position = &look.position;
    let time = look.moment.as_ref().map(|moment| format!("{} UTC", clock(moment.wall_ns))).unwrap_or_default();
    let place = match (position.is_live, state.is_paused) {
        (true, false) => "live".to_owned(),
        (true, true) => {
            format!("held at {} of {}", human::seconds(position.second), human::seconds(position.of_seconds))
        }
        (false, _) => {
            let thinned =
                if position.thinned > 1 { format!(", every {} samples", position.thinned) } else { String::new() };
            let (at, of) = (human::seconds(position.second), human::seconds(position.of_seconds));
            format!("recording {at} of {of}, sample {} of {}{thinned}", position.sample, position.of_samples)
        }
    };
    let host = if look.host.is_empty() { "this host" } else { &look.host };
    let right = format!("{time}  {place}");
    let host = shortened(host, width.saturating_sub(columns(&right) + 13).max(8));
    put(buffer, area, 0, &format!("Floodline  {host}"), BOLD);
    let at = width.saturating_sub(columns(&right));
    buffer.set_stringn(area.x + at as u16, 0, &right, width - at, PLAIN);
    unwritten(buffer, area, look, state);
    put(buffer, area, 2, &rates(look), PLAIN);
    let mut x = area.x;
    for screen in Screen::ALL {
        let style = if screen == state.screen { REVERSED.add_modifier(Modifier::BOLD) } else { PLAIN };
        let text = format!(" {} {} ", screen.number() + 1, screen.title());
        let (end, _) = buffer.set_stringn(x, 3, &text, usize::from(area.right().saturating_sub(x)), style);
        x = end + 1;
    }
    // The page of the verdict says it in its first line.
    let is_said = state.screen == Screen::Verdict;
    if let Some(finding) = look.report.as_ref().and_then(|report| report.findings.first()).filter(|_| !is_said) {
        let (word, rule) = (finding.severity.name(), finding.rule);
        let room = usize::from(area.right().saturating_sub(x));
        let texts = [format!("{word}: {rule}"), word.to_owned()];
        if let Some(text) = texts.iter().find(|text| columns(text) <= room) {
            let at = area.right().saturating_sub(columns(text) as u16);
            buffer.set_stringn(at, 3, text, columns(text), severity(state, finding.severity));
        }
    }
}

fn severity(state: &State, severity: Severity) -> Style {
    match severity {
        Severity::Critical => colored(state, Color::Red).add_modifier(Modifier::BOLD),
        Severity::Warning => colored(state, Color::Yellow).add_modifier(Modifier::BOLD),
        Severity::Info => colored(state, Color::Cyan),
    }
}

/// A bar of unwritten data up to the hard threshold, with the places at which the flusher starts and writers are paused.
fn unwritten(buffer: &mut Buffer, area: Rect, look: &Look, state: &State) {
    let Some(moment) = &look.moment else {
        return put(buffer, area, 1, "Waiting for the first sample.", PLAIN);
    };
    let amount = |value: Option<u64>| value.map_or_else(|| "?".to_owned(), |value| human::bytes(value as f64));
    let dirty = moment.dirty_bytes;
    let text = format!(
        "{}: flusher {}, pauses {}, stop {}",
        amount(dirty),
        amount(moment.bg_thresh_bytes),
        amount(look.freerun_bytes),
        amount(moment.thresh_bytes)
    );
    let label = "Unwritten ";
    let room = usize::from(area.width).saturating_sub(columns(label) + columns(&text) + 3);
    let bar = match (dirty, moment.thresh_bytes.filter(|thresh| *thresh > 0)) {
        (Some(dirty), Some(thresh)) if room >= 8 => {
            let cell = |value: u64| (value as f64 / thresh as f64 * room as f64) as usize;
            let mut bar = vec![' '; room];
            bar.iter_mut().take(cell(dirty)).for_each(|cell| *cell = '#');
            for (at, mark) in [(moment.bg_thresh_bytes, ':'), (look.freerun_bytes, '|')] {
                if let Some(cell) = at.and_then(|at| bar.get_mut(cell(at))).filter(|cell| **cell == ' ') {
                    *cell = mark;
                }
            }
            format!("[{}] ", bar.into_iter().collect::<String>())
        }
        _ => String::new(),
    };
    let over = |limit: Option<u64>| dirty.zip(limit).is_some_and(|(dirty, limit)| dirty > limit);
    let weight = match (over(moment.thresh_bytes), over(look.freerun_bytes)) {
        (true, _) => Weight::Over,
        (false, true) => Weight::Slowed,
        _ => Weight::Plain,
    };
    put(buffer, area, 1, &format!("{label}{bar}{text}"), style_of(state, weight));
}

fn rates(look: &Look) -> String {
    let Some(moment) = &look.moment else { return String::new() };
    let share = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let rate = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), human::bytes_per_second);
    format!(
        "I/O wait {}  iowait {}  blocked {}  dirtied {}  disks {}",
        share(moment.io_pressure_share),
        share(moment.iowait_share),
        moment.blocked_tasks.map_or_else(|| "?".to_owned(), |tasks| tasks.to_string()),
        rate(moment.dirtied_bytes_per_second),
        rate(moment.device_bytes_per_second)
    )
}

fn verdict(buffer: &mut Buffer, area: Rect, look: &Look, state: &mut State) {
    let Some(report) = &look.report else {
        return put(buffer, area, area.y, "A diagnosis needs two samples.", PLAIN);
    };
    let (width, is_live) = (usize::from(area.width), look.position.is_live);
    let options = doctor::Options { width, is_live, ..doctor::Options::default() };
    let text = doctor::render(report, options);
    let lines: Vec<&str> = text.lines().collect();
    let height = usize::from(area.height);
    state.row = state.row.min(lines.len().saturating_sub(height));
    let worst = report.findings.first().map(|finding| finding.severity);
    for (number, line) in lines.iter().enumerate().skip(state.row).take(height) {
        let style = match (number, worst) {
            (0, Some(worst)) => severity(state, worst),
            (0, None) => BOLD,
            _ if line.starts_with("Do now") => BOLD,
            _ => PLAIN,
        };
        put(buffer, area, area.y + (number - state.row) as u16, line, style);
    }
    let more = lines.len().saturating_sub(state.row + height);
    if more > 0 {
        let text = format!(" {more} more lines: Down ");
        let x = area.right().saturating_sub(columns(&text) as u16);
        buffer.set_stringn(x, area.bottom() - 1, &text, columns(&text), REVERSED);
    }
}

/// Widths of the columns: numbers take what they need, and the names take the rest.
fn widths(heads: &[Column], rows: &[&Row], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = heads.iter().map(|column| columns(column.head)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(columns(&cell.text));
        }
    }
    // A text at the end gives way first, then the name.
    let last = widths.len().saturating_sub(1);
    let sum = |widths: &[usize]| widths.iter().sum::<usize>() + widths.len();
    let is_text = rows.iter().all(|row| row.cells.get(last).is_none_or(|cell| cell.value.is_none()));
    let over = (sum(&widths) + 1).saturating_sub(width);
    if let Some(text) = widths.get_mut(last).filter(|_| is_text && last > 0) {
        *text = text.saturating_sub(over).max(TEXT_MIN.min(*text));
    }
    let over = (sum(&widths) + 1).saturating_sub(width);
    if let Some(name) = widths.first_mut() {
        *name = name.saturating_sub(over).max(NAME_MIN.min(*name));
    }
    let spare = width.saturating_sub(sum(&widths) + 1);
    if let Some(name) = widths.first_mut() {
        *name += spare;
    }
    widths
}

fn is_number(rows: &[&Row], column: usize) -> bool {
    column > 0
        && rows.iter().any(|row| row.cells.get(column).is_some_and(|cell| cell.value.is_some() || cell.text == "?"))
}

fn table(buffer: &mut Buffer, area: Rect, look: &Look, state: &mut State) {
    let Some(table) = look.table(state.screen) else { return };
    let rows = state.rows(look);
    state.row = state.row.min(rows.len().saturating_sub(1));
    state.column = state.column.min(table.columns.len().saturating_sub(1));
    let height = usize::from(area.height).saturating_sub(1).max(1);
    state.offset = state.offset.clamp((state.row + 1).saturating_sub(height), state.row);
    state.offset = state.offset.min(rows.len().saturating_sub(height));
    let shown: Vec<&Row> = rows.iter().skip(state.offset).take(height).copied().collect();
    let widths = widths(&table.columns, &shown, usize::from(area.width));
    let sorted = state.sort.get(state.screen.number().wrapping_sub(1)).copied().flatten();
    let mut x = area.x + 1;
    for (number, (column, width)) in table.columns.iter().zip(&widths).enumerate() {
        let arrow = match sorted {
            Some((by, ascending)) if by == number => {
                if ascending {
                    "+"
                } else {
                    "-"
                }
            }
            _ => "",
        };
        let text = format!("{}{arrow}", column.head);
        let style = if number == state.column { REVERSED } else { BOLD.add_modifier(Modifier::UNDERLINED) };
        cell(buffer, area, (x, area.y), &text, (*width, is_number(&shown, number)), style);
        x = x.saturating_add(*width as u16 + 1);
    }
    if rows.is_empty() {
        let text = if state.filter.is_empty() { table.empty } else { "No row matches the filter. Esc clears it." };
        put(buffer, area, area.y + 1, text, DIM);
    }
    for (line, row) in shown.iter().enumerate() {
        let y = area.y + 1 + line as u16;
        let mark = match row.weight {
            Weight::Plain => " ",
            Weight::Slowed => "*",
            Weight::Over => "!",
        };
        let mut style = style_of(state, row.weight);
        if state.offset + line == state.row {
            style = style.add_modifier(Modifier::REVERSED);
            buffer.set_style(Rect { y, height: 1, ..area }, style);
        }
        buffer.set_stringn(area.x, y, mark, 1, style);
        let mut x = area.x + 1;
        for (number, (content, width)) in row.cells.iter().zip(&widths).enumerate() {
            let text = if number == 0 { shortened(&content.text, *width) } else { content.text.clone() };
            cell(buffer, area, (x, y), &text, (*width, is_number(&shown, number)), style);
            x = x.saturating_add(*width as u16 + 1);
        }
    }
}

/// Text in a cell of a table: numbers stand at its right edge.
fn cell(
    buffer: &mut Buffer,
    area: Rect,
    (x, y): (u16, u16),
    text: &str,
    (width, is_right): (usize, bool),
    style: Style,
) {
    if x >= area.right() {
        return;
    }
    let room = width.min(usize::from(area.right() - x));
    let text = if columns(text) > room { shortened(text, room) } else { text.to_owned() };
    let pad = if is_right { room.saturating_sub(columns(&text)) } else { 0 };
    buffer.set_stringn(x + pad as u16, y, &text, room - pad, style);
}

fn foot(buffer: &mut Buffer, area: Rect, look: &Look, state: &State) {
    let (chosen, keys) = (area.bottom() - 2, area.bottom() - 1);
    let rows = state.rows(look);
    // What a narrow column shortens stands here in full.
    let whole = rows.get(state.row).map(|row| {
        let texts =
            row.cells.iter().filter(|cell: &&Cell| cell.value.is_none() && !cell.text.is_empty() && cell.text != "?");
        texts.map(|cell| cell.text.trim()).collect::<Vec<&str>>().join("  ")
    });
    let line = match (&state.asked, state.message.is_empty()) {
        (Some(Asked { what: Question::Filter, text }), _) => format!("Show rows with: {text}_"),
        (Some(Asked { what: Question::Time, text }), _) => format!("Go to (42s, 1m30s, 03:12:04): {text}_"),
        (None, false) => state.message.clone(),
        (None, true) => {
            let filter = if state.filter.is_empty() { String::new() } else { format!("filter \"{}\"  ", state.filter) };
            format!("{filter}{}", whole.unwrap_or_default())
        }
    };
    let width = usize::from(area.width);
    let is_asked = state.asked.is_some() || !state.message.is_empty();
    put(buffer, area, chosen, &shortened(&line, width), if is_asked { BOLD } else { DIM });
    let text = if area.width >= 80 {
        "q quit  Tab,1-5 screen  arrows  / filter  s sort  j k t time  ? source  h help"
    } else {
        "q quit  Tab screen  / filter  h help"
    };
    buffer.set_style(Rect { y: keys, height: 1, ..area }, REVERSED);
    put(buffer, area, keys, text, REVERSED);
}

fn popup(buffer: &mut Buffer, area: Rect, title: &str, lines: &[String]) {
    let width = usize::from(area.width).saturating_sub(4).min(76);
    let wrapped: Vec<String> = lines.iter().flat_map(|line| wrap(line, width - 4)).collect();
    let height = (wrapped.len() + 2).min(usize::from(area.height)) as u16;
    let place = Rect {
        x: area.x + (area.width - width as u16) / 2,
        y: area.y + (area.height - height) / 2,
        width: width as u16,
        height,
    };
    for y in place.top()..place.bottom() {
        buffer.set_stringn(place.x, y, " ".repeat(width), width, REVERSED);
    }
    buffer.set_stringn(place.x + 2, place.y, title, width - 4, REVERSED.add_modifier(Modifier::BOLD));
    for (number, line) in wrapped.iter().take(usize::from(height).saturating_sub(2)).enumerate() {
        buffer.set_stringn(place.x + 2, place.y + 1 + number as u16, line, width - 4, REVERSED);
    }
}

fn help() -> Vec<String> {
    [
        "1-5, Tab      choose the screen",
        "Up, Down      choose the row, or walk through the verdict",
        "Left, Right   choose the column",
        "?             where the numbers of the chosen column come from",
        "s             sort by the chosen column; again: the other way round",
        "< >           sort by the column beside",
        "/             show only rows with a text; Esc shows all",
        "j k           the next sample, the one before; J K: ten samples",
        "t             go to a time: 42s, 1m30s, 03:12:04",
        "Space         hold a live host still, or go on",
        "q             quit",
        "! marks a row over its limit, * one that is slowed or busy.",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Where the numbers come from: those of the chosen column, and of the head of the screen.
fn source(look: &Look, state: &State) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(column) = look.table(state.screen).and_then(|table| table.columns.get(state.column)) {
        lines.push(format!("{}: {}.", column.head, column.meaning));
        lines.push(format!("File: {}", column.source));
        lines.push(format!("Kernel function: {}", column.function));
        lines.push("------".to_owned());
    }
    lines.extend(
        [
            "Unwritten: /proc/vmstat nr_dirty; folio_account_dirtied()",
            "flusher: nr_dirty_background_threshold; pauses: half way from flusher to stop; stop: nr_dirty_threshold; \
             domain_dirty_limits(), dirty_freerun_ceiling()",
            "I/O wait: /proc/pressure/io some; psi_task_change()",
            "iowait, blocked: /proc/stat; account_idle_time(), nr_iowait()",
            "dirtied: /proc/vmstat nr_dirtied; disks: /proc/diskstats field 7",
        ]
        .map(str::to_owned),
    );
    lines
}

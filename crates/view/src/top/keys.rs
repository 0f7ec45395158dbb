// SPDX-License-Identifier: MIT OR Apache-2.0
//! What keys do: as in htop and below. A key changes the state, and may ask the program for something that the state
//! cannot do: end, walk through time.

use super::{Asked, Look, Popup, Question, Screen, State};

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The first row.
    Home,
    /// The last row.
    End,
    /// The next screen.
    Tab,
    /// The screen before.
    BackTab,
    /// Takes what was typed.
    Enter,
    /// Closes what is open.
    Esc,
    /// Takes a character back.
    Backspace,
}

/// What the program has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw again.
    Draw,
    /// End.
    Quit,
    /// Go forward by so many samples, or back.
    Step(i64),
    /// Go to a time that the person typed.
    GoTo(String),
    /// Hold a live host still, or go on.
    Pause,
}

/// Rows of a page.
const PAGE: usize = 15;
/// Characters that a person types.
const TYPED_MAX: usize = 60;

impl State {
    /// What a key does.
    pub fn key(&mut self, key: Key, look: &Look) -> Action {
        self.message.clear();
        if self.asked.is_some() {
            return self.typed(key);
        }
        if self.popup.take().is_some() && key != Key::Char('q') {
            return Action::Draw;
        }
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Char(' ') => return Action::Pause,
            Key::Char('j') => return Action::Step(1),
            Key::Char('k') => return Action::Step(-1),
            Key::Char('J') => return Action::Step(10),
            Key::Char('K') => return Action::Step(-10),
            Key::Char('t') => self.ask(Question::Time, String::new()),
            Key::Char('/') => self.ask(Question::Filter, self.filter.clone()),
            Key::Char('s') => self.sort_by(look, self.column),
            Key::Char('<') => self.sort_beside(look, -1),
            Key::Char('>') => self.sort_beside(look, 1),
            Key::Char('?') => self.popup = Some(Popup::Source),
            Key::Char('h') => self.popup = Some(Popup::Help),
            Key::Char(digit @ '1'..='5') => self.show(digit as usize - '1' as usize),
            Key::Tab => self.show((self.screen.number() + 1) % Screen::ALL.len()),
            Key::BackTab => self.show((self.screen.number() + Screen::ALL.len() - 1) % Screen::ALL.len()),
            Key::Up => self.choose_row(look, self.row.saturating_sub(1)),
            Key::Down => self.choose_row(look, self.row.saturating_add(1)),
            Key::PageUp => self.choose_row(look, self.row.saturating_sub(PAGE)),
            Key::PageDown => self.choose_row(look, self.row.saturating_add(PAGE)),
            Key::Home => self.choose_row(look, 0),
            Key::End => self.choose_row(look, usize::MAX),
            Key::Left => self.column = self.column.saturating_sub(1),
            Key::Right => self.column = (self.column + 1).min(self.columns(look).saturating_sub(1)),
            Key::Esc => self.filter.clear(),
            Key::Enter | Key::Backspace | Key::Char(_) => {}
        }
        Action::Draw
    }

    fn typed(&mut self, key: Key) -> Action {
        let Some(asked) = &mut self.asked else { return Action::Draw };
        match key {
            Key::Char(c) if asked.text.chars().count() < TYPED_MAX && !c.is_control() => asked.text.push(c),
            Key::Backspace => {
                asked.text.pop();
            }
            Key::Esc => {
                if asked.what == Question::Filter {
                    self.filter.clear();
                }
                self.asked = None;
                return Action::Draw;
            }
            Key::Enter => {
                let Some(Asked { what, text }) = self.asked.take() else { return Action::Draw };
                return match what {
                    Question::Time if !text.is_empty() => Action::GoTo(text),
                    Question::Time | Question::Filter => Action::Draw,
                };
            }
            _ => {}
        }
        // A filter acts while it is typed.
        if let Some(Asked { what: Question::Filter, text }) = &self.asked {
            self.filter.clone_from(text);
            self.row = 0;
        }
        Action::Draw
    }

    fn ask(&mut self, what: Question, text: String) {
        self.asked = Some(Asked { what, text });
    }

    fn show(&mut self, number: usize) {
        if let Some(screen) = Screen::ALL.get(number) {
            (self.screen, self.row, self.column, self.offset) = (*screen, 0, 0, 0);
        }
    }

    fn columns(&self, look: &Look) -> usize {
        look.table(self.screen).map_or(0, |table| table.columns.len())
    }

    /// Rows that can be walked through: of a table, or lines of text.
    fn choose_row(&mut self, look: &Look, row: usize) {
        let last = match self.screen {
            // Lines of a text are known where it is set.
            Screen::Verdict => super::draw::VERDICT_LINES_MAX,
            _ => self.rows(look).len().saturating_sub(1),
        };
        self.row = row.min(last);
    }

    /// Sorts by a column, largest first; by the same column again, the other way round.
    fn sort_by(&mut self, look: &Look, column: usize) {
        let count = self.columns(look);
        let Some(sort) = self.sort.get_mut(self.screen.number().wrapping_sub(1)) else { return };
        if column < count {
            *sort = match *sort {
                Some((same, ascending)) if same == column => Some((column, !ascending)),
                _ => Some((column, false)),
            };
        }
    }

    fn sort_beside(&mut self, look: &Look, by: isize) {
        let count = self.columns(look);
        if count > 0 {
            self.column = self.column.checked_add_signed(by).unwrap_or(count - 1) % count;
            self.sort_by(look, self.column);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terminal while `top` runs: taken over at the start and given back at the end, whatever ends it.

use crate::error::CliError;
use floodline_view::top::Key;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, BufWriter, ErrorKind, Stdout};
use std::time::Duration;

/// What happened at the terminal.
pub(super) enum Input {
    /// A key.
    Key(Key),
    /// The window has another size.
    Resized,
    /// Ctrl-C.
    End,
    /// Nothing that means anything here, or a signal.
    Nothing,
}

/// The terminal, taken over.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    /// Gives the terminal back at the end.
    _restore: Restore,
}

fn failed(error: io::Error) -> CliError {
    CliError::write("the terminal", &error)
}

/// Gives the terminal back, also where taking it over fails half-way.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        // An error at the end cannot be reported anywhere.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, ratatui_crossterm::crossterm::cursor::Show);
        let _ = disable_raw_mode();
    }
}

impl Screen {
    /// Takes the terminal over, until this is dropped.
    pub(super) fn open() -> Result<Screen, CliError> {
        enable_raw_mode().map_err(failed)?;
        let restore = Restore;
        execute!(io::stdout(), EnterAlternateScreen).map_err(failed)?;
        // One write for a screen: it may have a slow network behind it.
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, io::stdout()));
        let terminal = Terminal::new(backend).map_err(failed)?;
        Ok(Screen { terminal, _restore: restore })
    }

    /// Draws. Only cells that changed are written.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut ratatui_core::buffer::Buffer)) -> Result<(), CliError> {
        self.terminal.draw(|frame| draw(frame.buffer_mut())).map(|_| ()).map_err(failed)
    }

    /// Waits for input at most this long; `None` where there was none.
    pub(super) fn input(&self, at_most: Duration) -> Result<Option<Input>, CliError> {
        let happened = match poll(at_most) {
            Ok(false) => return Ok(None),
            Ok(true) => read(),
            Err(error) => Err(error),
        };
        match happened {
            Ok(event) => Ok(Some(meaning(&event))),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Some(Input::Nothing)),
            Err(error) => Err(failed(error)),
        }
    }
}

fn meaning(event: &Event) -> Input {
    match event {
        Event::Resize(..) => Input::Resized,
        Event::Key(KeyEvent { kind: KeyEventKind::Press | KeyEventKind::Repeat, code, modifiers, .. }) => {
            let is_control = modifiers.contains(KeyModifiers::CONTROL);
            match code {
                KeyCode::Char('c' | 'd') if is_control => Input::End,
                KeyCode::Char(_) if is_control => Input::Nothing,
                code => key(*code).map_or(Input::Nothing, Input::Key),
            }
        }
        _ => Input::Nothing,
    }
}

fn key(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::F(1) => Key::Char('h'),
        KeyCode::F(10) => Key::Char('q'),
        _ => return None,
    })
}

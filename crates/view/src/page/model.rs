// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a page is made of: a verdict, sections of findings, tables and plots. Plain text throughout; the template escapes
//! it. Knows nothing of what is shown.

use floodline_analysis::report::Severity;

/// What stands first on a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdict {
    /// Class of its colour.
    pub(super) class: &'static str,
    /// The word for it.
    pub(super) word: String,
    /// The sentence.
    pub(super) sentence: String,
    /// Label and text.
    pub(super) rows: Vec<(&'static str, String)>,
    /// Label and commands.
    pub(super) commands: Vec<(&'static str, Vec<String>)>,
}

/// A part of a page with a heading.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Anchor.
    pub(super) id: &'static str,
    /// Heading.
    pub(super) title: String,
    /// What stands in it.
    pub(super) blocks: Vec<Block>,
}

impl Section {
    pub(super) fn new(id: &'static str, title: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { id, title: title.into(), blocks }
    }
}

/// A part of a section.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// A paragraph.
    Text(String),
    /// Commands below a label.
    Commands(String, Vec<String>),
    /// A finding.
    Finding(Box<Finding>),
    /// A table.
    Table(Table),
    /// Plots side by side.
    Plots(Vec<Figure>),
}

/// A finding with its evidence.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) id: String,
    pub(super) class: &'static str,
    pub(super) word: String,
    pub(super) summary: String,
    /// Paragraphs before the evidence.
    pub(super) texts: Vec<String>,
    /// The second at which it shows most, and what is seen there.
    pub(super) at: Option<(String, String)>,
    pub(super) evidence: Option<Table>,
    pub(super) steps: Vec<String>,
    /// Paragraphs behind the steps.
    pub(super) after: Vec<String>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) heads: Vec<Head>,
    pub(super) rows: Vec<Row>,
    /// Remarks below it.
    pub(super) notes: Vec<String>,
}

impl Table {
    /// A table whose headings with a `#` before them stand above numbers.
    pub(super) fn new(caption: impl Into<String>, heads: &[&str]) -> Table {
        let head = |text: &&str| match text.strip_prefix('#') {
            Some(text) => Head { text: text.to_owned(), is_number: true },
            None => Head { text: (*text).to_owned(), is_number: false },
        };
        Table { caption: caption.into(), heads: heads.iter().map(head).collect(), ..Table::default() }
    }

    pub(super) fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row { class: "", cells });
    }
}

/// The heading of a column.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) text: String,
    pub(super) is_number: bool,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) class: &'static str,
    pub(super) cells: Vec<Cell>,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    /// The heading of its row.
    Name(String),
    /// Text.
    Text(String),
    /// A number, at the right.
    Number(String),
    /// A small curve: the path of it.
    Spark(String),
}

/// A plot as a picture.
#[derive(Clone, Debug, Default)]
pub(super) struct Figure {
    pub(super) id: String,
    /// Set and place in it of the data that the script reads.
    pub(super) number: String,
    pub(super) title: String,
    pub(super) source: String,
    /// What a person hears who does not see it.
    pub(super) described: String,
    pub(super) x_ticks: Vec<Tick>,
    pub(super) y_ticks: Vec<Tick>,
    pub(super) marks: Vec<Marked>,
    pub(super) lines: Vec<Curve>,
    pub(super) left_out: String,
}

/// A line across a plot with a number beside it.
#[derive(Clone, Debug)]
pub(super) struct Tick {
    pub(super) at: i64,
    pub(super) text: String,
    /// Whether a small screen leaves it out.
    pub(super) is_minor: bool,
}

/// A moment that is marked in a plot.
#[derive(Clone, Debug)]
pub(super) struct Marked {
    /// Anchor, where it has one.
    pub(super) id: String,
    pub(super) at: String,
    pub(super) text: String,
    /// Whether a finding shows there.
    pub(super) is_found: bool,
}

/// A curve of a plot.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) class: String,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) most: String,
}

/// Class of a severity's colour.
pub(super) fn class_of(severity: Severity) -> &'static str {
    severity.name()
}

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

    /// Class of the height at which a browser takes a section that it has not laid out: 200 px times a power of two.
    pub(super) fn tall(&self) -> u32 {
        let height: usize = self.blocks.iter().map(Block::height).sum();
        (height / 150).max(1).ilog2().min(7)
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

impl Block {
    /// Roughly the pixels that it takes on a desktop screen.
    fn height(&self) -> usize {
        match self {
            Block::Text(text) => 30 + text.len() / 160 * 22,
            Block::Commands(_, commands) => 60 + 19 * commands.len(),
            Block::Finding(finding) => {
                let rows = finding.evidence.as_ref().map_or(0, |table| table.rows.len());
                200 + 27 * (rows + finding.change.len() + finding.texts.len())
            }
            Block::Table(table) => 60 + 31 * table.rows.len() + 22 * table.notes.len(),
            Block::Plots(plots) => 330 * plots.len().div_ceil(2),
        }
    }
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
    /// Where its change stands: the plan has the commands.
    pub(super) change: Vec<String>,
    /// Paragraphs behind the change.
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
    /// Whether it is one of the parts of a long table.
    pub(super) is_part: bool,
}

/// Rows of a part of a long table.
const PART_ROWS: usize = 50;

impl Table {
    /// A table whose headings with a `#` before them stand above numbers.
    pub(super) fn new(caption: impl Into<String>, heads: &[&str]) -> Table {
        let head = |text: &&str| match text.strip_prefix('#') {
            Some(text) => Head { text: text.to_owned(), is_number: true },
            None => Head { text: (*text).to_owned(), is_number: false },
        };
        Table { caption: caption.into(), heads: heads.iter().map(head).collect(), ..Table::default() }
    }

    /// A long table as parts, each with the headings. A browser lays out only the parts near the screen.
    pub(super) fn in_parts(self) -> Vec<Block> {
        let all = self.rows.len();
        if all <= PART_ROWS * 2 {
            return vec![Block::Table(self)];
        }
        let mut parts: Vec<Table> = Vec::new();
        for rows in self.rows.chunks(PART_ROWS) {
            let from = parts.len() * PART_ROWS + 1;
            let caption = match from {
                1 => self.caption.clone(),
                from => format!("Rows {from} to {} of {all}", from + rows.len() - 1),
            };
            parts.push(Table {
                caption,
                heads: self.heads.clone(),
                rows: rows.to_vec(),
                notes: Vec::new(),
                is_part: true,
            });
        }
        if let Some(last) = parts.last_mut() {
            last.notes = self.notes;
        }
        parts.into_iter().map(Block::Table).collect()
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

/// Length from which a text counts as a sentence, bytes. The column of a sentence keeps a readable width.
const SENTENCE: usize = 60;

impl Cell {
    /// Whether the cell is a long text. On a narrow screen its column would shrink to one word, so it keeps a minimum width and the table
    /// scrolls.
    pub(super) fn is_sentence(&self) -> bool {
        matches!(self, Cell::Text(text) if text.len() >= SENTENCE)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_long_table_hold_each_row_once() {
        let table = |rows: usize| {
            let mut table = Table::new("All", &["Name"]);
            (0..rows).for_each(|row| table.push(vec![Cell::Name(row.to_string())]));
            table.notes.push("note".to_owned());
            table
        };
        assert_eq!(table(100).in_parts().len(), 1);
        let mut names = Vec::new();
        let mut captions = Vec::new();
        let mut notes = Vec::new();
        for part in table(101).in_parts() {
            let Block::Table(part) = part else { panic!("a table") };
            assert!(part.is_part && part.heads.len() == 1);
            captions.push(part.caption);
            notes.push(part.notes.len());
            for row in part.rows {
                let Some(Cell::Name(name)) = row.cells.into_iter().next() else { panic!("a name") };
                names.push(name);
            }
        }
        assert_eq!(names, (0..101).map(|row| row.to_string()).collect::<Vec<_>>());
        assert_eq!(captions, ["All", "Rows 51 to 100 of 101", "Rows 101 to 101 of 101"]);
        assert_eq!(notes, [0, 0, 1]);
    }

    #[test]
    fn a_section_states_its_height_roughly() {
        let section = |rows: usize| {
            let mut table = Table::new("", &["Name"]);
            (0..rows).for_each(|_| table.push(vec![Cell::Text(String::new())]));
            Section::new("x", "x", vec![Block::Table(table)]).tall()
        };
        assert_eq!([0, 1, 20, 50, 500, 100_000].map(section), [0, 0, 2, 3, 6, 7]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results as one HTML file that loads nothing and reads without script: a verdict, tables, plots as pictures. A script
//! adds zoom and hover. The page forbids every other script and every request (`Content-Security-Policy` by hashes), and
//! the template escapes all text, so that a container named `<script>` does nothing. Computes nothing, reads nothing.

mod compared;
mod figure;
mod fleet;
mod host;
mod model;
mod packed;
mod result;
mod waits;
mod whole;

pub use compared::compared;
pub use fleet::fleet;
pub use host::{Host, host};
pub use result::{NotAResult, result};
pub use whole::{Fold, Whole};

use askama::Template;
use model::{Block, Cell, Section, Verdict};

/// The plots' script: uPlot, under the MIT licence (`assets/uPlot.LICENSE`).
const PLOTS: &str = include_str!("../../assets/uPlot-1.6.32.min.js");
const SCRIPT: &str = include_str!("../../assets/page.js");
/// Runs the two others after the first paint.
const LOAD: &str = include_str!("../../assets/load.js");
const STYLE: &str = include_str!("../../assets/page.css");

/// Hashes of these files, as the policy of a page names them. A test compares them with the files.
const HASHES: Hashes = Hashes {
    load: "sha256-/ExXkPu6HP2VX4Hmyj85crTocvo2HRoZ/lc6SRH5dIg=",
    plots: "sha256-GcjUxq2Ikpp59K5J1vcWFWbf0Lo9FcxJXpdPeH63jx8=",
    page: "sha256-arbQJ8wVVaVcdzgS813jQIBX4ReW0gCxvRHY4YvhMko=",
    style: "sha256-gGdWR4OZOLuI1sw8ut2c+LQGmg8zysLDD705cKvn3gM=",
};

#[derive(Clone, Copy, Debug)]
struct Hashes {
    load: &'static str,
    plots: &'static str,
    page: &'static str,
    style: &'static str,
}

#[derive(Clone, Copy, Debug)]
struct Assets {
    load: &'static str,
    plots: &'static str,
    page: &'static str,
    style: &'static str,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page {
    title: String,
    about: Vec<String>,
    verdict: Option<Verdict>,
    sections: Vec<Section>,
    /// What the script draws; empty without plots.
    data: String,
    footer: String,
    hashes: Hashes,
    assets: Assets,
}

impl Page {
    fn new(title: String) -> Page {
        Page {
            title,
            about: Vec::new(),
            verdict: None,
            sections: Vec::new(),
            data: String::new(),
            footer: format!("Made by floodline {}. This file loads nothing.", env!("CARGO_PKG_VERSION")),
            hashes: HASHES,
            assets: Assets { load: LOAD, plots: PLOTS, page: SCRIPT, style: STYLE },
        }
    }

    fn html(&self) -> String {
        // A template writes to memory: it cannot fail.
        self.render().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_policy_names_the_files_that_the_page_holds() {
        let hash = |text: &str| format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())));
        assert_eq!(HASHES.load, hash(LOAD), "set Hashes::load");
        assert_eq!(HASHES.plots, hash(PLOTS), "set Hashes::plots");
        assert_eq!(HASHES.page, hash(SCRIPT), "set Hashes::page");
        assert_eq!(HASHES.style, hash(STYLE), "set Hashes::style");
    }

    #[test]
    fn no_file_of_the_page_can_end_its_element() {
        for text in [LOAD, PLOTS, SCRIPT] {
            assert!(!text.to_lowercase().contains("</script") && !text.contains("<!--"));
        }
        assert!(!STYLE.contains('<'));
    }

    #[test]
    fn no_file_of_the_page_loads_anything() {
        for word in ["url(", "@import", "http:", "//fonts"] {
            assert!(!STYLE.contains(word), "{word}");
        }
        for word in ["fetch(", "XMLHttpRequest", "import(", "WebSocket", "eval(", "innerHTML"] {
            assert!(!SCRIPT.contains(word) && !LOAD.contains(word), "{word}");
        }
    }
}

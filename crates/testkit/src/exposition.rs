// SPDX-License-Identifier: MIT OR Apache-2.0
//! A strict reader of the text formats of Prometheus, for tests: it accepts what the published formats allow and what the
//! naming rules ask for, and names the first line that breaks a rule.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Family {
    kind: String,
    has_help: bool,
}

/// Number of series on a page, or what is wrong with it.
pub fn check(page: &str, is_open_metrics: bool) -> Result<usize, String> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut ended: BTreeSet<String> = BTreeSet::new();
    let mut current = String::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    let body = match is_open_metrics {
        true => page.strip_suffix("# EOF\n").ok_or("no # EOF at the end")?,
        false => page,
    };
    if !body.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    for line in body.lines() {
        let wrong = |what: &str| Err(format!("{what}: {line}"));
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (keyword, name, rest) = (words.next(), words.next().unwrap_or(""), words.next().unwrap_or(""));
            if name != current {
                if !ended.insert(name.to_owned()) {
                    return wrong("the family is in two places");
                }
                current = name.to_owned();
            }
            let family = families.entry(name.to_owned()).or_default();
            match keyword {
                Some("HELP") if family.has_help => return wrong("two HELP lines"),
                Some("HELP") if rest.is_empty() => return wrong("no help text"),
                Some("HELP") => family.has_help = true,
                Some("TYPE") if !family.kind.is_empty() => return wrong("two TYPE lines"),
                Some("TYPE") if ["counter", "gauge", "histogram"].contains(&rest) => family.kind = rest.to_owned(),
                _ => return wrong("not HELP or TYPE"),
            }
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if !name.chars().all(is_name) || name.contains("__") {
                return wrong("not a name");
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').ok_or_else(|| format!("no value: {line}"))?;
        let Ok(value) = value.replace("Inf", "inf").parse::<f64>() else { return wrong("not a number") };
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels_of(labels).ok_or_else(|| format!("not labels: {line}"))?),
            None => (series, Vec::new()),
        };
        if !seen.insert(series.to_owned()) {
            return wrong("the series is there twice");
        }
        let Some(family) = families.get(&current).filter(|family| family.has_help && !family.kind.is_empty()) else {
            return wrong("a series before HELP and TYPE");
        };
        let total = |base: &str| if is_open_metrics { format!("{base}_total") } else { base.to_owned() };
        match family.kind.as_str() {
            "counter" => {
                let expect = total(&current);
                if name != expect || !name.ends_with("_total") {
                    return wrong("a counter is named _total");
                }
                if value < 0.0 {
                    return wrong("a counter below zero");
                }
            }
            "gauge" if name != current || name.ends_with("_total") => return wrong("not the family's name"),
            "histogram" => {
                let others: Vec<&(String, String)> = labels.iter().filter(|(name, _)| name != "le").collect();
                let key = format!("{current} {others:?}");
                match name.strip_prefix(current.as_str()) {
                    Some("_bucket") => {
                        let limit = labels.iter().find(|(name, _)| name == "le").map(|(_, limit)| limit.as_str());
                        let Some(limit) = limit.and_then(|limit| limit.replace("Inf", "inf").parse().ok()) else {
                            return wrong("a bucket without le");
                        };
                        let buckets = buckets.entry(key).or_default();
                        if buckets.last().is_some_and(|(last, upto)| limit <= *last || value < *upto) {
                            return wrong("buckets must rise");
                        }
                        buckets.push((limit, value));
                    }
                    Some("_count") => {
                        counts.insert(key, value);
                    }
                    Some("_sum") => {}
                    _ => return wrong("not a part of a histogram"),
                }
            }
            _ => {}
        }
    }
    for (key, buckets) in &buckets {
        if buckets.last().map(|(limit, upto)| (*limit, Some(upto))) != Some((f64::INFINITY, counts.get(key))) {
            return Err(format!("the last bucket of {key} is not the count"));
        }
    }
    Ok(seen.len())
}

/// Names and values of `name="value",…}`; `None` where that is broken or a name is there twice.
fn labels_of(text: &str) -> Option<Vec<(String, String)>> {
    let mut rest = text.strip_suffix('}')?;
    let mut labels: Vec<(String, String)> = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            return None;
        }
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    _ => return None,
                },
                (_, c) => value.push(c),
            }
        };
        if labels.iter().any(|(other, _)| other == name) {
            return None;
        }
        labels.push((name.to_owned(), value));
        rest = after.get(end + 1..)?;
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').filter(|rest| !rest.is_empty())?;
        }
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# HELP a_total Help.\n# TYPE a_total counter\n";

    #[test]
    fn broken_pages_are_refused() {
        let is_refused = |page: &str| assert!(check(page, false).is_err(), "{page}");
        assert_eq!(check(&format!("{HEAD}a_total{{x=\"1\"}} 2\n"), false), Ok(1));
        is_refused(&format!("{HEAD}a_total 1\na_total 1\n"));
        is_refused(&format!("{HEAD}a_total{{x=\"1\"y=\"2\"}} 1\n"));
        is_refused(&format!("{HEAD}a_total{{x=\"1}} 1\n"));
        is_refused(&format!("{HEAD}a_total nothing\n"));
        is_refused(&format!("{HEAD}b_total 1\n"));
        is_refused(&format!("{HEAD}a_total 1"));
        is_refused("a 1\n");
        is_refused(
            "# HELP a Help.\n# TYPE a gauge\na 1\n# HELP b Help.\n# TYPE b gauge\nb 1\n# HELP a Help.\na{x=\"1\"} 1\n",
        );
        let histogram = "# HELP h Help.\n# TYPE h histogram\n";
        assert_eq!(
            check(
                &format!("{histogram}h_bucket{{le=\"1\"}} 1\nh_bucket{{le=\"+Inf\"}} 2\nh_sum 3\nh_count 2\n"),
                false
            ),
            Ok(4)
        );
        is_refused(&format!("{histogram}h_bucket{{le=\"1\"}} 3\nh_bucket{{le=\"+Inf\"}} 2\nh_sum 3\nh_count 2\n"));
        is_refused(&format!("{histogram}h_bucket{{le=\"+Inf\"}} 2\nh_sum 3\nh_count 3\n"));
        assert!(check(&format!("{HEAD}a_total 1\n"), true).is_err());
    }
}

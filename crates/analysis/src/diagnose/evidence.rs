// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short ways to write evidence, so that a rule reads as what it argues. Each names the unit once;
//! the source is the file and key, or the kernel formula, that the value comes from.

use crate::report::{Evidence, Value};
use floodline_record::units::Quantity;

impl Evidence {
    fn new(name: impl Into<String>, value: Value, unit: &'static str, source: impl Into<String>) -> Evidence {
        Evidence { name: name.into(), value, unit, threshold: None, source: source.into() }
    }

    /// A whole number of bytes.
    pub fn bytes(name: impl Into<String>, bytes: u64, source: impl Into<String>) -> Evidence {
        Evidence::new(name, Value::Integer(bytes), "bytes", source)
    }

    /// Bytes per second.
    pub fn rate(name: impl Into<String>, bytes_per_second: f64, source: impl Into<String>) -> Evidence {
        Evidence::new(name, decimal(bytes_per_second), "bytes_per_second", source)
    }

    /// Events per second.
    pub fn per_second(name: impl Into<String>, per_second: f64, source: impl Into<String>) -> Evidence {
        Evidence::new(name, decimal(per_second), "per_second", source)
    }

    /// Seconds.
    pub fn seconds(name: impl Into<String>, seconds: f64, source: impl Into<String>) -> Evidence {
        Evidence::new(name, decimal(seconds), "seconds", source)
    }

    /// A share of one, shown in percent.
    pub fn share(name: impl Into<String>, share: f64, source: impl Into<String>) -> Evidence {
        Evidence::new(name, decimal(share), "share", source)
    }

    /// A ratio of two amounts of the same unit, shown as a factor.
    pub fn factor(name: impl Into<String>, factor: f64, source: impl Into<String>) -> Evidence {
        Evidence::new(name, decimal(factor), "factor", source)
    }

    /// A count.
    pub fn count(name: impl Into<String>, count: u64, source: impl Into<String>) -> Evidence {
        Evidence::new(name, Value::Integer(count), "count", source)
    }

    /// A setting or name. Text from the host must be escaped: take it from `Name` or `Entity::label`.
    pub fn text(name: impl Into<String>, text: impl Into<String>, source: impl Into<String>) -> Evidence {
        Evidence::new(name, Value::Text(text.into()), "text", source)
    }

    /// A reading with its own unit, e.g. `Centisecs`.
    pub fn reading(name: impl Into<String>, value: impl Quantity, source: impl Into<String>) -> Evidence {
        Evidence::new(name, Value::Integer(value.raw()), unit_of(value), source)
    }

    /// The reference value, in the same unit.
    pub fn against(self, threshold: f64) -> Evidence {
        let threshold = match self.value {
            Value::Integer(_) if threshold >= 0.0 && threshold.fract() == 0.0 && threshold < u64::MAX as f64 => {
                Value::Integer(threshold as u64)
            }
            _ => decimal(threshold),
        };
        Evidence { threshold: Some(threshold), ..self }
    }

    /// The reference value, in words.
    pub fn against_text(self, threshold: impl Into<String>) -> Evidence {
        Evidence { threshold: Some(Value::Text(threshold.into())), ..self }
    }
}

fn unit_of<Q: Quantity>(_: Q) -> &'static str {
    Q::UNIT.suffix()
}

/// JSON has no infinity and no NaN; both mean that a divisor was zero.
fn decimal(value: f64) -> Value {
    // Adding 0 makes a 0 of the -0 that an empty sum is.
    if value.is_finite() { Value::Decimal(value + 0.0) } else { Value::Text("unbounded".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Centisecs;

    #[test]
    fn a_threshold_takes_the_form_of_its_value() {
        let evidence = Evidence::bytes("dirty", 10, "x").against(20.0);
        assert_eq!(evidence.threshold, Some(Value::Integer(20)));
        let evidence = Evidence::seconds("drain", 1.5, "x").against(2.0);
        assert_eq!(evidence.threshold, Some(Value::Decimal(2.0)));
    }

    #[test]
    fn an_empty_sum_is_zero() {
        let sum: f64 = [].iter().sum();
        let Value::Decimal(value) = Evidence::seconds("a", sum, "x").value else { panic!("no number") };
        assert!(value.is_sign_positive());
    }

    #[test]
    fn a_division_by_zero_never_reaches_json_as_a_number() {
        assert_eq!(Evidence::factor("a", 1.0 / 0.0, "x").value, Value::Text("unbounded".to_owned()));
    }

    #[test]
    fn a_reading_keeps_its_unit() {
        assert_eq!(Evidence::reading("expire", Centisecs(3000), "x").unit, "centisecs");
    }
}

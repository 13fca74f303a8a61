//! Tables and progress messages for the user.

/// A table of results.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    explanation: String,
    rows: Vec<Vec<String>>,
}

/// The rounds of one measurement.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rounds(Vec<f64>);

impl Table {
    pub(crate) fn new(title: &str, explanation: String, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { title: title.to_owned(), explanation, rows: vec![columns] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    #[expect(clippy::print_stdout, reason = "the tables are this command's output")]
    pub(crate) fn print(&self, markdown: bool) {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let heading = if markdown { "### " } else { "" };
        println!("{heading}{}\n\n{}\n", self.title, self.explanation);
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = (0..columns)
                .map(|column| match (column, widths[column]) {
                    (0, width) => format!("{:width$}", row[column]),
                    (_, width) => format!("{:>width$}", row[column]),
                })
                .collect();
            if markdown {
                println!("| {} |", cells.join(" | "));
            } else {
                println!("{}", cells.join("  "));
            }
            if index == 0 && markdown {
                let rules = widths.iter().enumerate().map(|(column, &width)| match column {
                    0 => "-".repeat(width + 2),
                    _ => format!("{}:", "-".repeat(width + 1)),
                });
                println!("|{}|", rules.collect::<Vec<_>>().join("|"));
            }
        }
        println!();
    }
}

impl Rounds {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Returns the rounds with every value multiplied.
    pub(crate) fn times(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|value| value * factor).collect())
    }

    /// Returns the value that 95 of 100 do not exceed.
    pub(crate) fn most(&self) -> f64 {
        let sorted = self.sorted();
        sorted.get((sorted.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        match (sorted.len(), sorted.len() / 2) {
            (0, _) => f64::NAN,
            (count, middle) if count % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            (_, middle) => sorted[middle],
        }
    }

    /// Returns the distance between the lowest and the highest round, in percent of the median.
    pub(crate) fn spread(&self) -> String {
        let lowest = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!("{:.0} %", (highest - lowest) / self.median() * 100.0)
    }
}

/// Formats a number with about three significant digits and separated thousands.
pub(crate) fn number(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.2}");
    }
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut spaced = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            spaced.push(',');
        }
        spaced.push(digit);
    }
    spaced
}

/// Reports the progress of the run on standard error.
#[expect(clippy::print_stderr, reason = "standard output holds the results and nothing else")]
pub(crate) fn progress(line: &str) {
    eprintln!("load: {line}");
}

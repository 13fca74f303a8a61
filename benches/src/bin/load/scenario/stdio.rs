//! Requests over pipes, many of them in flight.

use std::time::{Duration, Instant};

use memchr::{memchr, memmem};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, ChildStdout},
    time::timeout,
};

use crate::{
    Fail,
    fleet::PATIENCE,
    options::Options,
    process::Server,
    report::{Table, number},
    request::{Ask, DIGITS, FIRST_NUMBER, Request, TEXT, check},
    scenario::{empty_rounds, explain, say},
};

/// Requests in flight. They and their answers fit into a pipe, so neither side ever blocks the other.
const UNDER_WAY: usize = 64;

/// Factor on the number of calls: over pipes they are so short that it takes more of them to measure.
const CALLS_FACTOR: usize = 10;

pub(super) async fn measure(options: &Options) -> Result<Table, Fail> {
    let calls = options.calls * CALLS_FACTOR;
    let mut running = Vec::new();
    for contender in &options.servers {
        say("stdio", contender);
        let (server, input, output) = Server::stdio(contender)?;
        let mut talk = Talk::new(input, output);
        talk.first().await.map_err(|error| format!("{}: {error}", contender.name))?;
        running.push((server, talk));
    }
    let (mut rates, mut spent) = (empty_rounds(options), empty_rounds(options));
    for _ in 0..options.rounds {
        for (index, (server, talk)) in running.iter_mut().enumerate() {
            let named = |error| format!("{}: {error}", options.servers[index].name);
            talk.ask(calls / 10, options.window / 10).await.map_err(named)?;
            let (before, start) = (server.spent()?, Instant::now());
            let answered = talk.ask(calls, options.window).await.map_err(named)?;
            let elapsed = start.elapsed();
            rates[index].push(answered as f64 / elapsed.as_secs_f64());
            spent[index].push(server.spent()?.microseconds_since(&before) / answered as f64);
        }
    }
    let what =
        format!("tools/call of echo through pipes, {UNDER_WAY} under way; server CPU time per request");
    let mut table = Table::new(
        "stdio",
        explain(&what, options),
        &["server", "requests a second", "spread", "CPU us", "spread"],
    );
    for (index, server) in options.servers.iter().enumerate() {
        let (rate, cost) = (&rates[index], &spent[index]);
        table.row(vec![
            server.name.clone(),
            number(rate.median()),
            rate.spread(),
            number(cost.median()),
            cost.spread(),
        ]);
    }
    Ok(table)
}

/// A conversation with a server over its pipes.
struct Talk {
    input: ChildStdin,
    output: ChildStdout,
    request: Request,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    finder: memmem::Finder<'static>,
}

impl Talk {
    fn new(input: ChildStdin, output: ChildStdout) -> Self {
        Self {
            input,
            output,
            request: Request::line(Ask::Echo),
            outgoing: Vec::new(),
            incoming: Vec::with_capacity(64 * 1024),
            finder: memmem::Finder::new(TEXT),
        }
    }

    /// Makes one call and checks the answer in full.
    async fn first(&mut self) -> Result<(), Fail> {
        self.input.write_all(self.request.number(0, None)).await?;
        timeout(PATIENCE, async {
            loop {
                self.receive().await?;
                if let Some(end) = memchr(b'\n', &self.incoming) {
                    check(Ask::Echo, 0, &self.incoming[..end])?;
                    self.incoming.clear();
                    return Ok(());
                }
            }
        })
        .await
        .map_err(|_| "the server hangs: its first answer is overdue")?
    }

    /// Makes this many calls, or stops after this time. Returns the number of answers.
    async fn ask(&mut self, calls: usize, window: Duration) -> Result<usize, Fail> {
        timeout(window + PATIENCE, self.ask_unbounded(calls, window))
            .await
            .map_err(|_| "the server hangs: answers are overdue")?
    }

    async fn ask_unbounded(&mut self, calls: usize, window: Duration) -> Result<usize, Fail> {
        let deadline = Instant::now() + window;
        let mut answered = vec![false; calls];
        let (mut sent, mut received) = (0, 0);
        loop {
            if Instant::now() < deadline {
                self.outgoing.clear();
                while sent < calls && sent - received < UNDER_WAY {
                    self.outgoing.extend_from_slice(self.request.number(sent, None));
                    sent += 1;
                }
                self.input.write_all(&self.outgoing).await?;
            }
            if received == sent {
                return Ok(received);
            }
            self.receive().await?;
            received += self.take_answers(&mut answered[..sent])?;
        }
    }

    async fn receive(&mut self) -> Result<(), Fail> {
        self.incoming.reserve(64 * 1024);
        match self.output.read_buf(&mut self.incoming).await? {
            0 => Err("the server closed its output".into()),
            _ => Ok(()),
        }
    }

    /// Checks the whole lines that have arrived: each must answer a request that has no answer yet.
    fn take_answers(&mut self, answered: &mut [bool]) -> Result<usize, Fail> {
        let (mut start, mut count) = (0, 0);
        while let Some(length) = memchr(b'\n', &self.incoming[start..]) {
            let line = &self.incoming[start..start + length];
            match self.answered_number(line).and_then(|number| answered.get_mut(number)) {
                Some(answered) if !*answered => *answered = true,
                _ => return Err(format!("not an answer: {}", String::from_utf8_lossy(line)).into()),
            }
            start += length + 1;
            count += 1;
        }
        self.incoming.drain(..start);
        Ok(count)
    }

    /// Returns the number in the echoed text.
    fn answered_number(&self, line: &[u8]) -> Option<usize> {
        let rest = line.get(self.finder.find(line)? + TEXT.len()..)?;
        let digits = rest.get(..DIGITS).filter(|_| rest.get(DIGITS) == Some(&b'"'))?;
        let number = digits.iter().try_fold(0, |number, &digit| {
            digit.is_ascii_digit().then(|| number * 10 + usize::from(digit - b'0'))
        })?;
        number.checked_sub(FIRST_NUMBER)
    }
}

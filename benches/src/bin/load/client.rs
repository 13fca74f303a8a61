//! One keep-alive connection, with just enough HTTP/1.1 to be cheap.

use std::sync::Arc;

use memchr::memmem;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    Fail,
    flow::{self, Retries},
    part::PARTS,
    process::{Place, Tokens},
    request::{Ask, Request, TEXT, check, digits},
    task::{self, Created},
};

/// A connection that sends one kind of request over and over.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    host: String,
    /// Access tokens of plain calls.
    tokens: Arc<Tokens>,
    ask: Ask,
    request: Request,
    retries: Retries,
    /// Tasks that are created and looked at.
    tasks: Arc<Created>,
    received: Vec<u8>,
    body: Vec<u8>,
    /// Length of the response that was checked in full.
    length: Option<usize>,
}

struct Head {
    /// `None` means chunks.
    length: Option<usize>,
    events: bool,
}

impl Connection {
    pub(crate) async fn open(place: &Place, ask: Ask, tasks: Arc<Created>) -> Result<Self, Fail> {
        let stream = TcpStream::connect(place.address).await?;
        stream.set_nodelay(true)?;
        let (host, tokens) = (place.address.to_string(), Arc::clone(&place.tokens));
        let (request, retries) = (Request::http(ask, &host, tokens.next()), Retries::new(ask, &host));
        let (received, body) = (Vec::new(), Vec::new());
        Ok(Self { stream, host, tokens, ask, request, retries, tasks, received, body, length: None })
    }

    /// Makes one call with all its rounds, and checks every answer.
    pub(crate) async fn call(&mut self, number: usize) -> Result<(), Fail> {
        if let Ask::Get(status) = self.ask {
            return self.look(number, status).await;
        }
        self.stream.write_all(self.request.number(number, self.tokens.next())).await?;
        match self.ask {
            Ask::Flow(rounds) => return self.flow(number, rounds, true).await,
            Ask::Abandoned => return self.flow(number, 1, false).await,
            Ask::Task | Ask::WaitingTask => return self.created().await,
            Ask::Parts => return self.parts(number).await,
            Ask::Echo | Ask::List(_) | Ask::Get(_) | Ask::GetBare => {}
        }
        let head = self.receive().await?;
        let right = match (self.length, self.ask) {
            (None, _) => {
                check(self.ask, number, if head.events { last_event(&self.body) } else { &self.body })?;
                self.length = Some(self.body.len());
                true
            }
            (Some(_), Ask::Echo) => contains_text(&self.body, number),
            (Some(length), _) => self.body.len() == length,
        };
        if right { Ok(()) } else { Err(self.wrong()) }
    }

    /// Sends the rounds of a flow that has begun, up to its end if it is to be answered.
    async fn flow(&mut self, number: usize, rounds: usize, answered: bool) -> Result<(), Fail> {
        for round in 0..=rounds {
            let events = self.receive().await?.events;
            let body = self.text(events)?;
            if self.length.is_none() {
                flow::check(body, number, round, rounds)?;
            }
            if round == rounds {
                if !flow::is_over(body, number, rounds) {
                    return Err(self.wrong());
                }
            } else {
                let Some(state) = flow::question(body, number, round + 1) else { return Err(self.wrong()) };
                if !answered {
                    break;
                }
                let retry = self.retries.answer(number, rounds, round + 1, state);
                self.stream.write_all(retry.as_bytes()).await?;
            }
        }
        self.length = Some(self.body.len());
        Ok(())
    }

    /// Receives a result in parts: one event for each, and one for the whole.
    async fn parts(&mut self, number: usize) -> Result<(), Fail> {
        let head = self.receive().await?;
        let events = memmem::find_iter(&self.body, "data: {").count();
        if !head.events || events != PARTS as usize + 1 {
            return Err(format!("{events} events in place of {PARTS} parts and a result").into());
        }
        check(self.ask, number, last_event(&self.body))
    }

    /// Receives a new task, and remembers its id.
    async fn created(&mut self) -> Result<(), Fail> {
        let events = self.receive().await?.events;
        match task::created(self.text(events)?) {
            Some(id) => self.tasks.push(id.to_owned()),
            None => return Err(self.wrong()),
        }
        Ok(())
    }

    /// Looks at one of the tasks, which must have this status.
    async fn look(&mut self, number: usize, status: &str) -> Result<(), Fail> {
        if self.sees(number, status).await? { Ok(()) } else { Err(self.wrong()) }
    }

    /// Looks at one of the tasks, and returns whether it has this status.
    pub(crate) async fn sees(&mut self, number: usize, status: &str) -> Result<bool, Fail> {
        let id = self.tasks.pick(number).ok_or("there is no task to look at")?;
        self.gets(&id, status).await
    }

    /// Looks at a task, and returns whether it has this status and what that brings along.
    pub(crate) async fn gets(&mut self, id: &str, status: &str) -> Result<bool, Fail> {
        Ok(task::has(self.about_task("tasks/get", id, "").await?, id, status))
    }

    /// Looks at a task in the dialect that shows no result, and returns whether it has this status.
    pub(crate) async fn gets_bare(&mut self, id: &str, status: &str) -> Result<bool, Fail> {
        let request = task::about_bare("tasks/get", id, &self.host);
        let answer = self.exchange(&request).await?;
        Ok(task::is(answer, status) && !answer.contains(r#""result":{"content""#))
    }

    /// Makes a request about a task, with more parameters, and returns the answer.
    pub(crate) async fn about_task(&mut self, method: &str, id: &str, more: &str) -> Result<&str, Fail> {
        let request = task::about(method, id, more, &self.host);
        self.exchange(&request).await
    }

    /// Calls a tool as a task, and returns the answer.
    pub(crate) async fn call_task(&mut self, tool: &str, arguments: &str) -> Result<&str, Fail> {
        let request = task::call(tool, arguments, &self.host);
        self.exchange(&request).await
    }

    async fn exchange(&mut self, request: &str) -> Result<&str, Fail> {
        self.stream.write_all(request.as_bytes()).await?;
        let events = self.receive().await?.events;
        self.text(events)
    }

    /// Returns the answer that was received last, as events or not.
    fn text(&self, events: bool) -> Result<&str, Fail> {
        Ok(str::from_utf8(if events { last_event(&self.body) } else { &self.body })?)
    }

    fn wrong(&self) -> Fail {
        format!("a wrong answer: {}", String::from_utf8_lossy(&self.body)).into()
    }

    /// Receives one response, and collects its body in `self.body`.
    async fn receive(&mut self) -> Result<Head, Fail> {
        self.received.clear();
        self.body.clear();
        let mut at = self.find(0, b"\r\n\r\n").await? + 4;
        let head = Head::parse(&self.received[..at])?;
        if let Some(length) = head.length {
            self.fill(at + length).await?;
            self.body.extend_from_slice(&self.received[at..at + length]);
            at += length;
        } else {
            loop {
                let end = self.find(at, b"\r\n").await?;
                let size = std::str::from_utf8(&self.received[at..end])?;
                let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)?;
                at = end + 2;
                self.fill(at + size + 2).await?;
                self.body.extend_from_slice(&self.received[at..at + size]);
                at += size + 2;
                if size == 0 {
                    break;
                }
            }
        }
        if self.received.len() == at { Ok(head) } else { Err("more bytes came than the answer has".into()) }
    }

    async fn find(&mut self, from: usize, pattern: &[u8]) -> Result<usize, Fail> {
        loop {
            if let Some(place) = memmem::find(&self.received[from..], pattern) {
                return Ok(from + place);
            }
            self.fill(self.received.len() + 1).await?;
        }
    }

    /// Receives until there are at least this many bytes.
    async fn fill(&mut self, bytes: usize) -> Result<(), Fail> {
        while self.received.len() < bytes {
            self.received.reserve((bytes - self.received.len()).max(1024));
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err("the server closed the connection".into());
            }
        }
        Ok(())
    }
}

impl Head {
    fn parse(bytes: &[u8]) -> Result<Self, Fail> {
        let text = std::str::from_utf8(bytes)?;
        let mut lines = text.split("\r\n");
        if !lines.next().is_some_and(|line| line.starts_with("HTTP/1.1 200")) {
            return Err(format!("not status 200: {text}").into());
        }
        let (mut length, mut chunks, mut json, mut events) = (None, false, false, false);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.parse()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                chunks = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("content-type") {
                json = value.starts_with("application/json");
                events = value.starts_with("text/event-stream");
            }
        }
        match (length.is_some() != chunks, json || events) {
            (true, true) => Ok(Self { length, events }),
            _ => Err(format!("an answer of unknown length or type: {text}").into()),
        }
    }
}

/// Returns whether the text sent under this number is present, as a whole string.
fn contains_text(answer: &[u8], number: usize) -> bool {
    let digits = digits(number);
    memmem::find_iter(answer, TEXT).any(|place| {
        let rest = &answer[place + TEXT.len()..];
        rest.starts_with(&digits) && rest.get(digits.len()) == Some(&b'"')
    })
}

/// Returns the data of the last event that has any; keep-alive events have none.
fn last_event(body: &[u8]) -> &[u8] {
    let data = body.split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    data.map(<[u8]>::trim_ascii).rfind(|data| !data.is_empty()).unwrap_or_default()
}

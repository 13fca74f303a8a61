//! Server processes: started, observed and ended by their own handles.

use std::{
    collections::HashMap,
    fs,
    net::SocketAddr,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::{Fail, options::Contender, setting};

/// Longest time for a server to start; under valgrind, with 10,000 tools, it takes a while.
const START: Duration = Duration::from_secs(60);

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pid: u32,
}

/// Place of a server: its address, and the access tokens that its callers present in turn.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    pub(crate) tokens: Arc<Tokens>,
}

/// Access tokens of equal length, or none.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    all: Vec<String>,
    next: AtomicUsize,
}

impl Tokens {
    /// Returns the next token.
    pub(crate) fn next(&self) -> Option<&str> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.all.get(number.checked_rem(self.all.len())?).map(String::as_str)
    }
}

/// Processor time that a server has used so far.
#[derive(Debug)]
pub(crate) struct Spent {
    nanoseconds_by_thread: HashMap<u32, u64>,
    ticks: u64,
}

impl Server {
    /// Starts an HTTP server with this many tools beside its own, and waits until it listens.
    pub(crate) async fn http(
        contender: &Contender,
        fillers: usize,
        under: &[String],
    ) -> Result<(Self, Place), Fail> {
        let count = fillers.to_string();
        let args: &[&str] = if fillers == 0 { &["http", "0"] } else { &["http", "0", "--tools", &count] };
        Self::listening(contender, args, under).await
    }

    /// Starts a server with these arguments, and waits until it listens.
    pub(crate) async fn listening(
        contender: &Contender,
        args: &[&str],
        under: &[String],
    ) -> Result<(Self, Place), Fail> {
        let mut server = Self::start(under, contender, args, Stdio::null())?;
        let output = server.child.stdout.take().ok_or("the server has no standard output")?;
        let mut lines = BufReader::new(output).lines();
        let mut tokens = Tokens::default();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(token) = line.strip_prefix("token ") {
                    tokens.all.push(token.trim().to_owned());
                } else if let Some(address) = line.strip_prefix("listening on ") {
                    return Ok(address.trim().parse()?);
                }
            }
            Err(Fail::from("it ended without saying where it listens"))
        };
        let address = timeout(START, listening).await.map_err(|_| "it does not say where it listens".into());
        let address = address.and_then(|address| address);
        let address = address.map_err(|error| format!("{}: {error}", contender.name))?;
        Ok((server, Place { address, tokens: Arc::new(tokens) }))
    }

    /// Starts a server on pipes.
    pub(crate) fn stdio(contender: &Contender) -> Result<(Self, ChildStdin, ChildStdout), Fail> {
        let mut server = Self::start(&[], contender, &["stdio"], Stdio::piped())?;
        let input = server.child.stdin.take().ok_or("the server has no standard input")?;
        let output = server.child.stdout.take().ok_or("the server has no standard output")?;
        Ok((server, input, output))
    }

    /// Starts a process that works on tasks and serves nothing.
    pub(crate) fn worker(contender: &Contender) -> Result<Self, Fail> {
        Self::start(&[], contender, &["work"], Stdio::null())
    }

    fn start(under: &[String], contender: &Contender, args: &[&str], input: Stdio) -> Result<Self, Fail> {
        let mut words = setting::server_prefix().iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        words.extend_from_slice(under);
        words.extend(contender.command(args));
        let [program, arguments @ ..] = &words[..] else { return Err("an empty command".into()) };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        let pid = child.id().ok_or("the server ended at once")?;
        Ok(Self { child, pid })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks the server to end, which lets a tool it runs under report its counts.
    pub(crate) async fn end(self) -> Result<(), Fail> {
        end(self.child, "-TERM").await
    }

    pub(crate) fn spent(&self) -> Result<Spent, Fail> {
        let mut nanoseconds_by_thread = HashMap::new();
        for thread in fs::read_dir(format!("/proc/{}/task", self.pid))? {
            let thread = thread?;
            // A thread may end between being listed and being read.
            if let Ok(account) = fs::read_to_string(thread.path().join("schedstat")) {
                let id = thread.file_name().to_string_lossy().parse()?;
                let on_cpu = account.split_whitespace().next().unwrap_or_default().parse()?;
                nanoseconds_by_thread.insert(id, on_cpu);
            }
        }
        let account = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        // The command's name comes in parentheses and may contain anything, so fields are counted from its end.
        let fields = account.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        let mut times = fields.skip(11).map(str::parse::<u64>);
        match (times.next(), times.next()) {
            (Some(user), Some(system)) => Ok(Spent { nanoseconds_by_thread, ticks: user? + system? }),
            _ => Err("the server's account of time cannot be read".into()),
        }
    }

    /// Returns the resident memory in MiB.
    pub(crate) fn resident(&self) -> Result<f64, Fail> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS is listed")?;
        Ok(kibibytes.parse::<f64>()? / 1024.0)
    }
}

impl Spent {
    /// Returns the microseconds of processor time since `before`.
    pub(crate) fn microseconds_since(&self, before: &Self) -> f64 {
        let (now, then) = (&self.nanoseconds_by_thread, &before.nanoseconds_by_thread);
        let total: u64 = now.values().sum();
        if total > 0 && then.keys().all(|thread| now.contains_key(thread)) {
            (total - then.values().sum::<u64>()) as f64 / 1e3
        } else {
            // Linux reports ticks of 10 ms to programs, whatever the kernel uses itself.
            (self.ticks - before.ticks) as f64 * 1e4
        }
    }
}

/// Sends a signal to our own child and waits for its end.
pub(crate) async fn end(mut child: Child, signal: &str) -> Result<(), Fail> {
    if let Some(pid) = child.id() {
        Command::new("kill").args([signal, &pid.to_string()]).status().await?;
    }
    timeout(START, child.wait()).await.map_err(|_| "a child process does not end")??;
    Ok(())
}

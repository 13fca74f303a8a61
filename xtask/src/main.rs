//! `cargo xtask`: what this project does to itself. Each command has a module of its own; `process` and
//! `install` are the tools they share.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod conformance;
mod crash;
mod everything;
mod features;
mod fixture;
mod install;
mod interop;
mod mutations;
mod process;
mod services;
mod side_by_side;
mod spec;
mod tally;
mod weight;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask <command>

  conformance [server|client] [--spec V] [scenario..]   the official conformance suite, strictly
  crash [--seed N]                                      workers of tasks killed at random points, 200 times a database
  features                                              the tests with each set of cargo features
  interop [peer] [http|stdio]                           published SDKs, both ways: python, typescript, python-1x,
                                                        typescript-1x, fastmcp, rmcp, neva, plain
  interop auth [word..]                                 sign-ins at published authorization servers, both ways
  interop cli [word..]                                  the built `roundtrip` command, on servers of published SDKs
  interop fleet [word..]                                published clients of two instances behind nginx
  mutations [name..]                                    checks of authorization, switched off one at a time: a test must
                                                        notice each
  services -- command..                                 a command with PostgreSQL and Redis, which end with it
  spec [--check]                                        write SPEC.md from the tests' doc comments
  test [--quick]                                        everything; --quick leaves out sets of features and the network
  weight [rounds]                                       crates, build time and size of a hello server, beside rmcp";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((command, rest)) = arguments.split_first() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match dispatch(command, rest) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask {command}: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs one command; false means that it ran and something it checked is wrong.
fn dispatch(command: &str, rest: &[&str]) -> Result<bool> {
    let workspace = Workspace::find()?;
    match command {
        "conformance" => conformance::command(&workspace, rest),
        "crash" => crash::command(&workspace, rest),
        "features" => features::command(&workspace, rest),
        "interop" => interop::command(&workspace, rest),
        "mutations" => mutations::command(&workspace, rest),
        "services" => services::command(&workspace, rest),
        "spec" => spec::command(&workspace, rest),
        "test" => everything::command(workspace, rest),
        "weight" => weight::command(&workspace, rest),
        other => anyhow::bail!("no such command: {other}\n{USAGE}"),
    }
}

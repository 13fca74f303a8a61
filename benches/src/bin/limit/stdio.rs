//! Serves standard input and output: one message a line.

use std::io::{self, Read, Write};

use memchr::memchr_iter;

use crate::{
    message::{Message, Refusal, write_refusal},
    tools::Tools,
};

const CHUNK: usize = 64 * 1024;

/// Longer than any line this benchmark sends; a longer line is refused, not buffered.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// Answers every line until the input ends. All lines that arrived together are answered in one write.
pub(crate) fn serve(tools: &Tools) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut pending: Vec<u8> = vec![0; CHUNK];
    let mut filled = 0;
    let mut answers = Vec::with_capacity(CHUNK);
    loop {
        if filled == pending.len() {
            if filled > LONGEST_LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
            }
            pending.resize(filled * 2, 0);
        }
        let read = input.read(&mut pending[filled..])?;
        if read == 0 {
            return Ok(());
        }
        let unsearched = filled;
        filled += read;
        let mut start = 0;
        for newline in memchr_iter(b'\n', &pending[unsearched..filled]) {
            let end = unsearched + newline;
            answer(tools, &pending[start..end], &mut answers);
            start = end + 1;
        }
        pending.copy_within(start..filled, 0);
        filled -= start;
        output.write_all(&answers)?;
        output.flush()?;
        answers.clear();
    }
}

fn answer(tools: &Tools, line: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let (id, answered) = match Message::parse(line) {
        Ok(message) => match message.id() {
            Some(id) => (Some(id), checked(tools, &message, id, out)),
            None => return,
        },
        Err(refusal) => (None, Err(refusal)),
    };
    if let Err(refusal) = answered {
        out.truncate(start);
        write_refusal(out, id, &refusal);
    }
    out.push(b'\n');
}

fn checked(tools: &Tools, message: &Message<'_>, id: &str, out: &mut Vec<u8>) -> Result<(), Refusal> {
    Message::require_revision(message.declared_version()?)?;
    tools.answer(out, message, id)
}

//! Calls of tools, prompts and resources may be answered with questions, and nothing else (M1).

use roundtrip::wire::{CallTool, Complete, Discover, GetPrompt, ListTools, MayAsk, ReadResource};

fn may_ask<M: MayAsk>() {}

fn main() {
    may_ask::<CallTool>();
    may_ask::<GetPrompt>();
    may_ask::<ReadResource>();
    may_ask::<ListTools>();
    may_ask::<Complete>();
    may_ask::<Discover>();
}

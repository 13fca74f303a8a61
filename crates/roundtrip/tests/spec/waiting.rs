//! How handlers wait: whatever they do around a question, nothing is swallowed, lost or left to hang.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::{Ask, AskError, Question, Reply, Round, Server, State, Tool, ToolError};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio::{join, select};

use crate::asking::{Diary, Party, endpoint, people, yes};
use crate::support::{Call, Turn};

/// Says when it is dropped.
struct Guard(Diary);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.note("dropped");
    }
}

/// A3: nothing in a handler can catch a suspension: what comes after the question does not run, whatever is wrapped
/// around it.
#[tokio::test]
async fn a_suspension_cannot_be_swallowed() {
    async fn swallowing(
        State(diary): State<Diary>,
        State(way): State<usize>,
        ask: Ask,
    ) -> Result<String, ToolError> {
        let question = ask.form::<Party>("party", "How many?");
        let fallback = Party { people: 99 };
        let party = match way {
            0 => question.await.ok().unwrap_or(fallback),
            1 => question.await.unwrap_or(fallback),
            2 => select! {
                answer = question => answer.unwrap_or(fallback),
                () = sleep(Duration::from_millis(5)) => fallback,
            },
            3 => timeout(Duration::from_millis(5), question)
                .await
                .ok()
                .and_then(Result::ok)
                .unwrap_or(fallback),
            4 => {
                let mut tries = 0;
                loop {
                    tries += 1;
                    match ask.form::<Party>("party", "How many?").await {
                        Ok(party) => break party,
                        Err(_) if tries < 10 => {}
                        Err(_) => break fallback,
                    }
                }
            }
            5 => {
                let spawned = tokio::spawn(question);
                spawned.await.ok().and_then(Result::ok).unwrap_or(fallback)
            }
            _ => match join!(question, sleep(Duration::from_millis(5))).0 {
                Ok(party) => party,
                Err(_) => fallback,
            },
        };
        diary.note("after the question");
        Ok(format!("for {}", party.people))
    }
    for way in 0..7_usize {
        let diary = Diary::default();
        let server =
            Server::new("asking", "1").state(diary.clone()).state(way).tool(Tool::new("t", swallowing));
        let endpoint = server.build().expect("a server");
        let call = Call::tool("t");
        let turn = call.begin(&endpoint).await;
        assert_eq!(turn.keys(), ["party"], "way {way}");
        assert_eq!(diary.take(), [""; 0], "way {way}: nothing after the question has run");
        assert_eq!(call.answer(&endpoint, &turn, people("party", 2)).await.text(), "for 2", "way {way}");
        assert_eq!(diary.take(), ["after the question"]);
    }
}

/// A10: a handler that is dropped at its question runs its destructors once, before the reply, and nothing of it runs
/// on.
#[tokio::test]
async fn a_dropped_handler_leaves_nothing_behind() {
    async fn guarded(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
        let _guard = Guard(diary.clone());
        yield_now().await;
        ask.confirm("sure", "Sure?").await?;
        diary.note("after");
        Ok("done".into())
    }
    let (endpoint, diary) = endpoint(Tool::new("guarded", guarded));
    let call = Call::tool("guarded");
    let turn = call.begin(&endpoint).await;
    assert_eq!(diary.take(), ["dropped"]);
    assert_eq!(call.answer(&endpoint, &turn, yes("sure")).await.text(), "done");
    assert_eq!(diary.take(), ["after", "dropped"]);
}

/// A10: work that runs beside a question and not inside `once` is dropped with the handler, and runs again.
#[tokio::test]
async fn work_beside_a_question_is_dropped_and_runs_again() {
    async fn beside(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
        let work = async {
            diary.note("begun");
            sleep(Duration::from_millis(2)).await;
            diary.note("ended");
        };
        let (answer, ()) = join!(ask.confirm("sure", "Sure?"), work);
        Ok(answer?.to_string())
    }
    let (endpoint, diary) = endpoint(Tool::new("beside", beside));
    let call = Call::tool("beside");
    let turn = call.begin(&endpoint).await;
    sleep(Duration::from_millis(10)).await;
    assert_eq!(diary.take(), ["begun"], "it does not run on without its handler");
    assert_eq!(call.answer(&endpoint, &turn, yes("sure")).await.text(), "true");
    assert_eq!(diary.take(), ["begun", "ended"]);
}

/// M23: a step that runs beside a question is waited for before the round ends, and is not repeated.
#[tokio::test]
async fn a_step_beside_a_question_ends_before_the_round() {
    async fn beside(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
        let step = ask.once("quote", async |_| {
            diary.note("begun");
            sleep(Duration::from_millis(2)).await;
            diary.note("ended");
            Ok::<_, ToolError>(42)
        });
        let (answer, quote) = join!(ask.confirm("sure", "Sure?"), step);
        Ok(format!("{} {}", answer?, quote?))
    }
    let (endpoint, diary) = endpoint(Tool::new("beside", beside));
    let call = Call::tool("beside");
    let turn = call.begin(&endpoint).await;
    assert_eq!(diary.take(), ["begun", "ended"]);
    assert_eq!(call.answer(&endpoint, &turn, yes("sure")).await.text(), "true 42");
    assert_eq!(diary.take(), [""; 0]);
}

/// M23: a question asked from inside a step can never be answered there: it is a mistake that is told, not a hang.
#[tokio::test]
async fn a_question_inside_a_step_is_a_mistake() {
    async fn inside(ask: Ask) -> Result<String, ToolError> {
        let sure = ask.once("step", async |_| ask.confirm("sure", "Sure?").await).await?;
        Ok(sure.to_string())
    }
    let (endpoint, _) = endpoint(Tool::new("inside", inside));
    let turn = Call::tool("inside").begin(&endpoint).await;
    assert!(turn.error().1.contains("`sure`"), "{turn:?}");
}

/// A3: an `Ask` that a handler leaves behind in a spawned task is told that the round is over, at once, whether the
/// round ended in a question, in a result, or in a panic.
#[tokio::test]
async fn an_ask_kept_beyond_its_round_is_told() {
    type Heard = Arc<Mutex<Vec<Result<bool, AskError>>>>;
    async fn leaking(
        State(heard): State<Heard>,
        State(go): State<Arc<Notify>>,
        State(way): State<usize>,
        ask: Ask,
    ) -> Result<String, ToolError> {
        let kept = ask.clone();
        tokio::spawn(async move {
            go.notified().await;
            let answer = kept.confirm("late", "Late?").await;
            heard.lock().expect("a lock").push(answer);
        });
        match way {
            0 => drop(ask.confirm("sure", "Sure?").await?),
            1 => panic!("on purpose"),
            _ => {}
        }
        Ok("done".into())
    }
    for way in 0..3_usize {
        let (heard, go) = (Heard::default(), Arc::new(Notify::new()));
        let server = Server::new("asking", "1")
            .state(Arc::clone(&heard))
            .state(Arc::clone(&go))
            .state(way)
            .tool(Tool::new("leaking", leaking));
        let endpoint = server.build().expect("a server");
        let _ = Call::tool("leaking").send(&endpoint, None, None).await;
        yield_now().await;
        go.notify_one();
        let told = async {
            while heard.lock().expect("a lock").is_empty() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(5), told).await.expect("an answer, not a hang");
        let heard = heard.lock().expect("a lock").clone();
        assert_eq!(heard, [Err(AskError::Closed)], "way {way}");
        assert!(AskError::Closed.to_string().contains("must not outlive its handler"));
    }
}

/// A3: a question that waits in a spawned task when the round ends is told so too, and does not hang.
#[tokio::test]
async fn a_question_that_waits_elsewhere_is_told_of_the_end() {
    async fn leaking(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
        let kept = ask.clone();
        tokio::spawn(async move {
            match kept.confirm("elsewhere", "Elsewhere?").await {
                Err(AskError::Closed) => diary.note("closed"),
                _ => diary.note("something else"),
            }
        });
        yield_now().await;
        ask.confirm("here", "Here?").await?;
        Ok("done".into())
    }
    let (endpoint, diary) = endpoint(Tool::new("leaking", leaking));
    let turn = Call::tool("leaking").begin(&endpoint).await;
    assert_eq!(turn.keys(), ["elsewhere", "here"], "what is on the table when the handler stops is asked");
    for _ in 0..10 {
        yield_now().await;
    }
    assert_eq!(diary.take(), ["closed"]);
}

/// A3: a step that a spawned task runs is waited for, and its end wakes the call.
#[tokio::test]
async fn a_step_in_a_spawned_task_does_not_hang_the_call() {
    async fn spawning(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
        let kept = ask.clone();
        tokio::spawn(async move {
            let step = kept.once("step", async |_| {
                sleep(Duration::from_millis(2)).await;
                diary.note("step");
                Ok::<_, ToolError>(1)
            });
            drop(step.await);
        });
        yield_now().await;
        ask.confirm("sure", "Sure?").await?;
        Ok("done".into())
    }
    let (endpoint, diary) = endpoint(Tool::new("spawning", spawning));
    assert_eq!(Call::tool("spawning").begin(&endpoint).await.keys(), ["sure"]);
    assert_eq!(diary.take(), ["step"]);
}

/// A3: a question given up for something that was ready is off the table, and does not end the round later.
#[tokio::test]
async fn a_question_given_up_is_off_the_table() {
    async fn impatient(ask: Ask) -> Result<String, ToolError> {
        for _ in 0..2 {
            select! {
                biased;
                answer = ask.confirm("sure", "Sure?") => drop(answer?),
                () = std::future::ready(()) => {}
            }
            yield_now().await;
        }
        select! {
            biased;
            found = ask.until("page", async || Ok::<Option<u8>, ToolError>(None)) => drop(found?),
            () = std::future::ready(()) => {}
        }
        yield_now().await;
        Ok("done".into())
    }
    let (endpoint, _) = endpoint(Tool::new("impatient", impatient));
    assert_eq!(Call::tool("impatient").begin(&endpoint).await.text(), "done");
}

/// A3: by hand the round ends where the handler returns, not where it waits for something else before that.
#[tokio::test]
async fn by_hand_the_round_ends_where_the_handler_returns() {
    async fn by_hand(State(diary): State<Diary>, round: Round) -> Result<Reply, ToolError> {
        let Some(party) = round.answer::<Party>("party")? else {
            let reply = round.ask([Question::form::<Party>("party", "How many?")]);
            yield_now().await;
            diary.note("noted that it asks");
            return Ok(reply);
        };
        Ok(Reply::text(format!("for {}", party.people)))
    }
    let (endpoint, diary) = endpoint(Tool::new("by_hand", by_hand));
    let call = Call::tool("by_hand");
    let turn = call.begin(&endpoint).await;
    assert_eq!(turn.keys(), ["party"]);
    assert_eq!(diary.take(), ["noted that it asks"]);
    assert_eq!(call.answer(&endpoint, &turn, people("party", 2)).await.text(), "for 2");
}

/// M23: a handler that panics between two questions fails that round with an internal error; the client can send the
/// round again, and earlier answers and steps stand.
#[tokio::test]
async fn a_panic_between_questions_costs_one_round() {
    async fn panicking(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
        let party: Party = ask.form("party", "How many?").await?;
        ask.once("hold", async |_| {
            diary.note("hold");
            Ok::<_, ToolError>(())
        })
        .await?;
        ask.confirm("first", "First?").await?;
        assert!(diary.0.lock().expect("a lock").len() != 1, "on purpose");
        ask.confirm("second", "Second?").await?;
        Ok(format!("for {}", party.people))
    }
    let (endpoint, diary) = endpoint(Tool::new("panicking", panicking));
    let call = Call::tool("panicking");
    let turn = call.begin(&endpoint).await;
    let turn = call.answer(&endpoint, &turn, people("party", 2)).await;
    let panicked = call.answer(&endpoint, &turn, yes("first")).await;
    assert_eq!(panicked.error(), (-32603, "internal error"));
    diary.note("mended");
    let turn = call.answer(&endpoint, &turn, yes("first")).await;
    assert_eq!(turn.keys(), ["second"]);
    assert_eq!(call.answer(&endpoint, &turn, yes("second")).await.text(), "for 2");
    assert_eq!(diary.take(), ["hold", "mended"]);
}

/// M23: a step that panics is not remembered, and does not keep the call from ending.
#[tokio::test]
async fn a_step_that_panics_is_an_internal_error() {
    async fn panicking(ask: Ask) -> Result<String, ToolError> {
        let step = ask.once("step", async |_| -> Result<(), ToolError> { panic!("on purpose") });
        let (answer, step) = join!(ask.confirm("sure", "Sure?"), step);
        step?;
        Ok(answer?.to_string())
    }
    let (endpoint, _) = endpoint(Tool::new("panicking", panicking));
    let call = Call::tool("panicking");
    for _ in 0..2 {
        let turn: Turn = call.begin(&endpoint).await;
        assert_eq!(turn.error(), (-32603, "internal error"));
    }
}

/// A10: a destructor that panics when the handler is dropped at its question fails that call, and no other.
#[tokio::test]
async fn a_destructor_that_panics_fails_its_own_call() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    async fn bombed(ask: Ask) -> Result<String, ToolError> {
        let _bomb = Bomb;
        ask.confirm("sure", "Sure?").await?;
        Ok("done".into())
    }
    let (endpoint, _) = endpoint(Tool::new("bombed", bombed));
    let turn = Call::tool("bombed").begin(&endpoint).await;
    assert_eq!(turn.error(), (-32603, "internal error"));
}

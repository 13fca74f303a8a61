//! Capture of what is logged by `tracing`.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex};

use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Writes down spans and events, one in a line: the name or the level, then the fields as they become known.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<String>>);

impl<S: tracing::Subscriber> Layer<S> for Recorder {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        _: &tracing::span::Id,
        _: Context<'_, S>,
    ) {
        let mut text = self.0.lock().expect("a lock");
        let _ = write!(text, "\n{}", attributes.metadata().name());
        attributes.record(&mut Fields(&mut text));
    }

    fn on_record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>, _: Context<'_, S>) {
        values.record(&mut Fields(&mut self.0.lock().expect("a lock")));
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut text = self.0.lock().expect("a lock");
        let _ = write!(text, "\n{}", event.metadata().level());
        event.record(&mut Fields(&mut text));
    }
}

struct Fields<'a>(&'a mut String);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

/// A second subscriber, in no thread. As long as there is just one, `tracing` takes a log statement that another test comes to
/// first, in a thread without a subscriber, for one that is never recorded.
static SECOND: LazyLock<tracing::Dispatch> =
    LazyLock::new(|| tracing::Dispatch::new(tracing_subscriber::registry()));

/// Runs a future on a runtime of its own, and returns the spans and events that were recorded meanwhile.
pub(crate) fn logged(run: impl Future<Output = ()>) -> String {
    LazyLock::force(&SECOND);
    let recorder = Recorder::default();
    let subscriber = tracing_subscriber::registry().with(recorder.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _default = tracing::subscriber::set_default(subscriber);
    runtime.block_on(run);
    recorder.0.lock().expect("a lock").clone()
}

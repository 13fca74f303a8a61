//! Structs are objects on the wire: a list of the values of their members, by position, is rejected.

mod spy;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use roundtrip_core::wire::{json, *};
use serde::Deserialize;
use spy::{Spy, Structs};
use tree::Tree;

/// A type, and a text in which all its structs are there.
struct Example {
    name: &'static str,
    text: String,
    /// Reads a text as the library does.
    read: fn(&str) -> Result<(), String>,
    /// Reads a text as serde does.
    read_by_serde: fn(&str) -> bool,
    spy: fn(&str, &Structs),
}

macro_rules! examples {
    ($($type:ty: $text:expr;)*) => {
        vec![$(Example {
            name: stringify!($type),
            text: $text.replace("META", META),
            read: |text| json::from_str::<$type>(text).map(drop).map_err(|error| error.to_string()),
            read_by_serde: |text| serde_json::from_str::<$type>(text).is_ok(),
            spy: |text, structs| {
                let mut deserializer = serde_json::Deserializer::from_str(text);
                let read = <$type>::deserialize(Spy::new(&mut deserializer, structs));
                read.map(|_| ()).unwrap_or_else(|error| panic!("{error}: {text}"));
            },
        }),*]
    };
}

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/related-task":{"taskId":"t"},
    "io.modelcontextprotocol/clientCapabilities":{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{}}}}"#;
const RESULT_META: &str = r#"{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1",
    "icons":[{"src":"data:,","theme":"dark"}]}}"#;
const CONTENT: &str = r#"[{"type":"text","text":"a","annotations":{"priority":1}},
    {"type":"image","data":"","mimeType":"a/b"},{"type":"audio","data":"","mimeType":"a/b"},
    {"type":"resource_link","uri":"a:b","name":"c"},{"type":"resource","resource":{"uri":"a:b","text":""}}]"#;
const TASK: &str = r#"{"taskId":"t","status":"failed","createdAt":"","lastUpdatedAt":"",
    "inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a"}}},
    "error":{"code":1,"message":"m"}}"#;
const TOOL: &str = r#"{"name":"t","inputSchema":{},"annotations":{"title":"a"},"icons":[{"src":"data:,"}]}"#;

fn requests() -> Vec<Example> {
    examples! {
        RequestParams<'_>: r#"{"_meta":META}"#;
        PaginatedRequestParams<'_>: r#"{"_meta":META,"cursor":"c"}"#;
        CallToolRequestParams<'_>: r#"{"_meta":META,"name":"t","arguments":{}}"#;
        GetPromptRequestParams<'_>: r#"{"_meta":META,"name":"p","arguments":{"a":"b"}}"#;
        ReadResourceRequestParams<'_>: r#"{"_meta":META,"uri":"a:b"}"#;
        CompleteRequestParams<'_>: r#"{"_meta":META,"ref":{"type":"ref/prompt","name":"p","title":"q"},
            "argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"c"}}}"#;
        CompletionReference<'_>: r#"{"type":"ref/resource","uri":"a:b"}"#;
        SubscriptionsListenRequestParams<'_>: r#"{"_meta":META,"notifications":{"toolsListChanged":true}}"#;
        TaskRequestParams<'_>: r#"{"_meta":META,"taskId":"t"}"#;
        UpdateTaskRequestParams<'_>: r#"{"_meta":META,"taskId":"t","inputResponses":{}}"#;
        TaskPayloadRequestParams<'_>: r#"{"_meta":META,"taskId":"t"}"#;
        TaskInputResponseRequestParams<'_>: r#"{"_meta":META,"inputResponses":{}}"#;
        PartsFrom: r#"{"from":1}"#;
    }
}

fn results() -> Vec<Example> {
    let fill = |text: &str| {
        let text = text.replace("INFO", RESULT_META).replace("CONTENT", CONTENT);
        text.replace("TASK", TASK).replace("TOOL", TOOL)
    };
    examples! {
        DiscoverResult: fill(r#"{"supportedVersions":[],"_meta":INFO,"capabilities":{"prompts":{},
            "resources":{"subscribe":true},"tools":{"listChanged":true}}}"#);
        ListToolsResult: fill(r#"{"tools":[TOOL],"_meta":INFO}"#);
        CallToolResult: fill(r#"{"content":CONTENT,"_meta":INFO}"#);
        ListPromptsResult: r#"{"prompts":[{"name":"p","arguments":[{"name":"a"}],"icons":[{"src":"data:,"}]}]}"#;
        GetPromptResult: r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}"#;
        ListResourcesResult: r#"{"resources":[{"uri":"a:b","name":"c","annotations":{"priority":1}}]}"#;
        ListResourceTemplatesResult: r#"{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"c"}]}"#;
        ReadResourceResult: r#"{"contents":[{"uri":"a:b","text":"t"},{"uri":"a:b","blob":""}]}"#;
        TextResourceContents: r#"{"uri":"a:b","mimeType":"a/b","text":""}"#;
        BlobResourceContents: r#"{"uri":"a:b","mimeType":"a/b","blob":""}"#;
        CompleteResult: r#"{"completion":{"values":["a"],"total":1}}"#;
        SubscriptionsListenResult: fill(r#"{"_meta":INFO}"#);
        InputRequiredResult: fill(r#"{"resultType":"input_required","requestState":"s","_meta":INFO,"inputRequests":{
            "form":{"method":"elicitation/create","params":{"mode":"form","message":"m",
                "requestedSchema":{"type":"object","properties":{}}}},
            "page":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a"}},
            "model":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":CONTENT}],
                "maxTokens":1,"modelPreferences":{"hints":[{"name":"h"}]},"tools":[TOOL],
                "toolChoice":{"mode":"auto"}}},
            "roots":{"method":"roots/list","params":{}}}}"#);
        Task: fill("TASK");
        CreateTaskResult: fill("TASK").replacen('{', r#"{"resultType":"task","#, 1);
        GetTaskResult: fill("TASK");
        TaskNotificationParams: fill("TASK");
        TaskAcknowledgedResult: fill(r#"{"_meta":INFO}"#);
        CreateBareTaskResult: r#"{"task":{"taskId":"t","status":"working","createdAt":"","lastUpdatedAt":""}}"#;
        BareTaskResult: fill(r#"{"taskId":"t","status":"working","createdAt":"","lastUpdatedAt":"","_meta":INFO}"#);
        ListTasksResult: r#"{"tasks":[{"taskId":"t","status":"working","createdAt":"","lastUpdatedAt":""}]}"#;
        ErrorObject: r#"{"code":1,"message":"m"}"#;
    }
}

fn answers() -> Vec<Example> {
    let fill = |text: &str| text.replace("CONTENT", CONTENT);
    examples! {
        ElicitResult: r#"{"action":"accept","content":{}}"#;
        ListRootsResult: r#"{"roots":[{"uri":"file:///a","name":"b"}]}"#;
        CreateMessageResult: fill(r#"{"role":"assistant","model":"m","content":[
            {"type":"tool_use","id":"i","name":"n","input":{}},{"type":"text","text":"a"},
            {"type":"tool_result","toolUseId":"i","content":CONTENT}]}"#);
    }
}

fn notifications() -> Vec<Example> {
    examples! {
        CancelledNotificationParams: r#"{"requestId":1,"reason":"r"}"#;
        ProgressNotificationParams: r#"{"progressToken":1,"progress":0.5}"#;
        PartNotificationParams: r#"{"requestId":1,"part":0,"content":{"type":"text","text":"a"}}"#;
        LoggingMessageNotificationParams: r#"{"level":"info","data":{}}"#;
        ResourceUpdatedNotificationParams: r#"{"uri":"a:b"}"#;
        NotificationParams: r#"{"_meta":{}}"#;
        SubscriptionsAcknowledgedNotificationParams: r#"{"notifications":{"taskIds":["t"]}}"#;
    }
}

/// The variants of unions. A union reads them from the members behind its tag, which the spy does not see.
fn variants() -> Vec<Example> {
    examples! {
        TextContent: r#"{"text":"a","annotations":{"priority":1}}"#;
        ImageContent: r#"{"data":"","mimeType":"a/b","annotations":{"priority":1}}"#;
        AudioContent: r#"{"data":"","mimeType":"a/b","annotations":{"priority":1}}"#;
        EmbeddedResource: r#"{"resource":{"uri":"a:b","text":""},"annotations":{"priority":1}}"#;
        ToolUseContent: r#"{"id":"i","name":"n","input":{}}"#;
        ToolResultContent: r#"{"toolUseId":"i","content":[{"type":"text","text":"a"}]}"#;
        ElicitRequestFormParams: r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
        ElicitRequestUrlParams: r#"{"mode":"url","message":"m","url":"https://a"}"#;
        NumberSchema: r#"{"title":"t","minimum":1}"#;
        BooleanSchema: r#"{"title":"t","default":true}"#;
    }
}

fn forms() -> Vec<Example> {
    examples! {
        ElicitSchema: r#"{"type":"object","properties":{"text":{"type":"string","title":"t"},
            "number":{"type":"number","minimum":1},"flag":{"type":"boolean","default":true},
            "one":{"type":"string","oneOf":[{"const":"a","title":"A"}]},
            "some":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}},
            "any":{"type":"array","items":{"type":"string","enum":["a"]}}}}"#;
        StringSchema: r#"{"title":"t"}"#;
        UntitledSingleSelectEnumSchema: r#"{"title":"t","enum":["a"]}"#;
        TitledSingleSelectEnumSchema: r#"{"title":"t","oneOf":[{"const":"a","title":"A"}]}"#;
        UntitledMultiSelectEnumSchema: r#"{"title":"t","items":{"type":"string","enum":["a"]}}"#;
        TitledMultiSelectEnumSchema: r#"{"title":"t","items":{"anyOf":[{"const":"a","title":"A"}]}}"#;
        LegacyTitledEnumSchema: r#"{"title":"t","enum":["a"],"enumNames":["A"]}"#;
        ServerCapabilities: r#"{"prompts":{"listChanged":true},"resources":{},"tools":{}}"#;
    }
}

fn all() -> Vec<Example> {
    [requests(), results(), answers(), notifications(), variants(), forms()].into_iter().flatten().collect()
}

#[test]
fn a_list_is_not_taken_for_an_object_at_any_depth() {
    let (mut tried, mut taken_by_serde) = (0, 0);
    for Example { name, text, read, read_by_serde, spy } in all() {
        let whole = Tree::parse(&text);
        for text in [whole.to_string(), whole.reversed().to_string()] {
            assert_eq!(read(&text), Ok(()), "{name}: {text}");
        }
        assert!(read("[]").is_err(), "{name}");
        let structs = Structs::default();
        spy(&whole.to_string(), &structs);
        for found in structs.into_inner() {
            let mut listed = whole.clone();
            let place = listed.at(&found.path);
            *place = place.list(found.fields);
            for text in [listed.to_string(), listed.reversed().to_string()] {
                let refusal = read(&text).expect_err(&text);
                assert!(refusal.contains("sequence"), "{name}, {}: {refusal}: {text}", found.name);
                taken_by_serde += usize::from(read_by_serde(&text));
                tried += 1;
            }
        }
    }
    assert!(tried > 200 && taken_by_serde > tried / 2, "{taken_by_serde} of {tried} would be taken");
}

/// Names of the public structs below a folder that derive `Deserialize`.
fn derived(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            names.append(&mut derived(&path));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut derives = false;
        for line in text.lines() {
            match line.strip_prefix("pub struct ") {
                _ if line.starts_with("#[derive(") => derives = line.contains("Deserialize"),
                Some(rest) if derives => {
                    names.insert(rest.chars().take_while(|letter| letter.is_alphanumeric()).collect());
                }
                _ => {}
            }
        }
    }
    names
}

#[test]
fn no_struct_is_left_out() {
    let structs = Structs::default();
    all().iter().for_each(|example| (example.spy)(&Tree::parse(&example.text).to_string(), &structs));
    let seen: BTreeSet<String> = structs.into_inner().iter().map(|found| found.name.to_owned()).collect();
    // `BareTaskResult` has flattened members, so that serde reads it as a map.
    let left: BTreeSet<String> = derived(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire"))
        .into_iter()
        .filter(|name| !seen.contains(name) && name != "BareTaskResult")
        .collect();
    assert!(left.is_empty(), "give these types an example: {left:?}");
}

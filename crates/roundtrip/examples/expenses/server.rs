//! The server: three tools, a prompt, a resource and a template.

use anyhow::{Context as _, ensure};
use roundtrip::server::Partial;
use roundtrip::wire::ErrorObject;
use roundtrip::{
    Args, Ask, Caller, Form, Json, Prompt, Resource, ResourceTemplate, Server, State, Tool, ToolError, Uri,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::books::{Books, Category, Expense};

/// From this much on, an expense has to be approved.
const LIMIT: u32 = 100;

pub(crate) fn server(books: Books) -> Server {
    let completed = books.clone();
    Server::new("expenses", "1.0.0")
        .instructions("Book what the user spent; ask for a report at the end of the month.")
        .tool(Tool::new("submit", submit).description("Book an expense"))
        .tool(Tool::new("list", list).description("List the expenses of a month").read_only())
        .tool(Tool::new("delete_all", delete_all).description("Not allowed, and says so").destructive())
        .prompt(Prompt::new("report", report).description("Report on a month").complete(
            "month",
            move |typed: Partial| {
                let books = completed.clone();
                async move { months(&books, &typed.value) }
            },
        ))
        .resource(Resource::new("expenses://policy", "policy", policy).mime_type("text/markdown"))
        .template(ResourceTemplate::new("expenses://by-number/{number}", "expense", by_number))
        .state(books)
}

/// Callers are told apart by their principal; over stdio there is one.
fn owner(caller: &Caller) -> String {
    caller.principal.as_ref().map_or_else(|| "me".to_owned(), ToString::to_string)
}

#[derive(Deserialize, JsonSchema)]
struct Submit {
    /// Purpose of the expense
    purpose: String,
    /// Whole euros
    #[schemars(range(min = 1, max = 10_000))]
    euros: u32,
    /// Month, such as 2026-11
    #[schemars(regex(pattern = r"^\d{4}-\d{2}$"))]
    month: String,
}

#[derive(Form)]
struct Details {
    /// Which category?
    category: Category,
    /// Number on the receipt
    #[form(min_length = 3, max_length = 20)]
    receipt: String,
}

async fn submit(
    Args(expense): Args<Submit>,
    ask: Ask,
    caller: Caller,
    State(books): State<Books>,
) -> anyhow::Result<Json<Expense>> {
    let details: Details = ask.form("details", format!("About {}:", expense.purpose)).await?;
    ensure!(
        details.receipt.chars().any(|c| c.is_ascii_digit()),
        "a receipt has a number: ask for another one"
    );
    if expense.euros >= LIMIT {
        let question = format!("{} euros for {}. Do you approve?", expense.euros, expense.purpose);
        ensure!(ask.confirm("approval", question).await?, "the expense was not approved");
    }
    let expense = Expense {
        number: 0,
        purpose: expense.purpose,
        euros: expense.euros,
        month: expense.month,
        category: details.category,
    };
    // Remembered from the next round on; until then, the key makes a repeated round book nothing more.
    let booked = ask.once("book", async |step| {
        Ok::<_, ToolError>(books.book(&owner(&caller), step.idempotency_key(), expense.clone()))
    });
    let number = booked.await.map_err(ErrorObject::from).context("the books are closed")?;
    Ok(Json(Expense { number, ..expense }))
}

#[derive(Deserialize, JsonSchema)]
struct Month {
    /// Month, such as 2026-11; all if it is missing
    month: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    expenses: Vec<Expense>,
    euros: u32,
}

async fn list(Args(wanted): Args<Month>, caller: Caller, State(books): State<Books>) -> Json<Listed> {
    let expenses = books.of(&owner(&caller), wanted.month.as_deref());
    Json(Listed { euros: expenses.iter().map(|expense| expense.euros).sum(), expenses })
}

async fn delete_all() -> Result<String, &'static str> {
    Err("expenses are kept for ten years")
}

async fn report(Args(wanted): Args<Month>, caller: Caller, State(books): State<Books>) -> String {
    let expenses = books.of(&owner(&caller), wanted.month.as_deref());
    let lines: Vec<String> =
        expenses.iter().map(|expense| format!("- {}: {} euros", expense.purpose, expense.euros)).collect();
    format!("Write a short report on these expenses:\n{}", lines.join("\n"))
}

fn months(books: &Books, typed: &str) -> Vec<String> {
    let mut months: Vec<String> = books.of("me", None).into_iter().map(|expense| expense.month).collect();
    months.retain(|month| month.starts_with(typed));
    months.sort();
    months.dedup();
    months
}

async fn policy() -> String {
    format!("# Expenses\n\nFrom {LIMIT} euros on, an expense has to be approved.\n")
}

#[derive(Deserialize, JsonSchema)]
struct Numbered {
    number: u32,
}

async fn by_number(
    Args(wanted): Args<Numbered>,
    Uri(uri): Uri,
    caller: Caller,
    State(books): State<Books>,
) -> Result<Json<Expense>, ErrorObject> {
    let mut own = books.of(&owner(&caller), None).into_iter();
    own.find(|expense| expense.number == wanted.number)
        .map(Json)
        .ok_or_else(|| ErrorObject::resource_not_found(&uri))
}

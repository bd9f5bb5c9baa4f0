//! The content of a page of files: the picture of a recorded cluster, or what is played.

use std::path::Path;

use serde_json::json;

use super::{UiArgs, picture};
use crate::context::Context;
use crate::failure::Failure;
use crate::inputs::Input;
use crate::output::Format;
use crate::progress::Progress;
use crate::scenario::{self, Life, PlayArgs, Question, ScenarioArgs, When};

/// JSON: the data in the page's document, and what is served beside.
pub(super) struct Content {
    pub(super) in_document: String,
    pub(super) data: String,
}

/// What the page shows; `None` if the files have errors, which were reported.
///
/// # Errors
/// The files cannot be read or played.
pub(super) fn content(
    args: &UiArgs,
    names: &[String],
    context: &Context,
) -> Result<Option<Content>, Failure> {
    let piped = format!("{} ui -", context.program);
    let inputs = args.world.inputs(names, piped)?;
    match recorded(args, names, &inputs)? {
        Some(life) => of_life(&life, names, context).map(Some),
        None => {
            let played = played(args, names, inputs, context)?;
            Ok(played.map(|data| Content {
                in_document: data.clone(),
                data,
            }))
        }
    }
}

/// The files as a recorded cluster; `None` if they are to be played.
fn recorded(args: &UiArgs, names: &[String], inputs: &[Input]) -> Result<Option<Life>, Failure> {
    let nodes = &args.world.nodes;
    if scenario::is_in(inputs) || nodes.is_shaped() || nodes.nodes.is_some() {
        return Ok(None);
    }
    // What is wrong with the files is reported when they are played.
    let life = scenario::recorded(&args.world, names, inputs.to_vec(), &Context::quiet())?;
    Ok(life.filter(Life::is_dump))
}

fn of_life(life: &Life, names: &[String], context: &Context) -> Result<Content, Failure> {
    let mut rows = None;
    let progress = Progress::new(context.quiet);
    life.look(When::Start, &progress, &mut |seen, frame| {
        rows = Some(picture::rows(seen.moment, frame));
    })?;
    let mut rows = rows.unwrap_or_default();
    for (n, finding) in life.findings().iter().enumerate() {
        rows.set(format!("finding files {n:05}"), &json!(finding));
    }
    let files: Vec<&str> = names.iter().map(|name| last_part(name)).collect();
    let data = rows.whole();
    let about = json!({"kind": picture::KIND, "title": files.join(", ")});
    Ok(Content {
        in_document: format!("{{\"report\":{about},\"data\":{data}}}"),
        data,
    })
}

fn last_part(name: &str) -> &str {
    let last = Path::new(name).file_name().and_then(|last| last.to_str());
    last.unwrap_or(name)
}

fn played(
    args: &UiArgs,
    names: &[String],
    inputs: Vec<Input>,
    context: &Context,
) -> Result<Option<String>, Failure> {
    let scenario = ScenarioArgs {
        play: PlayArgs {
            variant: args.variant.clone(),
            seeds: args.seeds,
            until: args.until.clone(),
            ..PlayArgs::default()
        },
        ..ScenarioArgs::default()
    };
    let question = Question {
        // The page shows all workloads, as a report has them.
        output: Some(Format::Json),
        html: Some(""),
        ..Question::of(&scenario, &args.world, names)
    };
    scenario::page(&question, inputs, context)
}

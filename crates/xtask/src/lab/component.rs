//! A process of the control plane.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

/// A running process with its output in a file. It ends with this value, and with the process that holds it.
pub struct Component {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Component {
    /// Starts `command`, with its output in `NAME.log` of the folder.
    ///
    /// Its standard input is a pipe that nothing is written to: `controlplane attached` ends when it closes.
    pub(super) fn start(
        name: &'static str,
        mut command: Command,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log)?;
        let child = command
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        Ok(Self { name, child, log })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// An error, with the last lines of its output, if it has ended by itself.
    pub(super) fn expect_running(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!(
                "{} ended ({status}); the end of its output:\n{}",
                self.name,
                self.last_lines()
            ),
        }
    }

    fn last_lines(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Component {
    /// Nothing that it wrote is needed any more, so it is not asked.
    fn drop(&mut self) {
        match self.child.kill() {
            Err(error) if error.kind() != ErrorKind::InvalidInput => {
                eprintln!("{} (process {}) stays: {error}", self.name, self.child.id());
            }
            _ => drop(self.child.wait()),
        }
    }
}

#[test]
fn a_component_ends_with_its_value_and_tells_why_it_ended() {
    let folder = std::env::temp_dir().join(format!("strew-component-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.as_path();
    let component = Component::start("cat", Command::new("cat"), folder).unwrap();
    let process = PathBuf::from(format!("/proc/{}", component.id()));
    let has_proc = Path::new("/proc/self").exists();
    assert_eq!(process.exists(), has_proc);
    drop(component);
    assert!(!process.exists());

    let mut command = Command::new("sh");
    command.args(["-c", "echo said; exit 7"]);
    let mut component = Component::start("sh", command, folder).unwrap();
    component.child.wait().unwrap();
    let error = component.expect_running().unwrap_err().to_string();
    assert!(error.contains("7") && error.ends_with("said"), "{error}");
}

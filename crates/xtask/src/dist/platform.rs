//! The platforms of a release, with the names that others have for them.

use super::VERSION;

/// A platform: an operating system and a kind of processor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Platform {
    /// As Go, containers and krew call it.
    pub(super) os: &'static str,
    pub(super) arch: &'static str,
    /// The target of Rust.
    pub(super) target: &'static str,
    /// The names of recipes: placeholder and value.
    pub(super) names: [(&'static str, &'static str); 7],
    /// The tag of a wheel, as Python's installers compare it.
    pub(super) wheel: &'static str,
}

/// One row a platform.
macro_rules! platforms {
    ($($os:literal $arch:literal $target:literal nix $nix:literal brew $brew:literal winget $winget:literal scoop $scoop:literal rust $rust:literal node $node_os:literal $node_cpu:literal wheel $wheel:literal;)+) => {
        &[$(Platform {
            os: $os,
            arch: $arch,
            target: $target,
            names: [
                ("NIX", $nix),
                ("CPU_BREW", $brew),
                ("CPU_WINGET", $winget),
                ("CPU_SCOOP", $scoop),
                ("CPU_RUST", $rust),
                ("NODE_OS", $node_os),
                ("NODE_CPU", $node_cpu),
            ],
            wheel: $wheel,
        }),+]
    };
}

/// All that a release is built for. A static program needs no library, so its wheel fits each libc.
pub(super) const PLATFORMS: &[Platform] = platforms! {
    "linux" "amd64" "x86_64-unknown-linux-gnu" nix "x86_64-linux" brew "intel" winget "x64" scoop "64bit" rust "x86_64" node "linux" "x64" wheel "manylinux2014_x86_64.musllinux_1_1_x86_64";
    "linux" "arm64" "aarch64-unknown-linux-gnu" nix "aarch64-linux" brew "arm" winget "arm64" scoop "arm64" rust "aarch64" node "linux" "arm64" wheel "manylinux2014_aarch64.musllinux_1_1_aarch64";
    "darwin" "amd64" "x86_64-apple-darwin" nix "x86_64-darwin" brew "intel" winget "x64" scoop "64bit" rust "x86_64" node "darwin" "x64" wheel "macosx_11_0_x86_64";
    "darwin" "arm64" "aarch64-apple-darwin" nix "aarch64-darwin" brew "arm" winget "arm64" scoop "arm64" rust "aarch64" node "darwin" "arm64" wheel "macosx_11_0_arm64";
    "windows" "amd64" "x86_64-pc-windows-msvc" nix "x86_64-windows" brew "intel" winget "x64" scoop "64bit" rust "x86_64" node "win32" "x64" wheel "win_amd64";
};

/// The platform of this machine: the program itself writes its manual pages, so it must run here. Windows on arm64 runs
/// the program of amd64.
pub(super) const HERE: &Platform = &PLATFORMS[{
    let os = match (cfg!(target_os = "macos"), cfg!(windows)) {
        (true, _) => 2,
        (_, true) => 4,
        _ => 0,
    };
    match cfg!(target_arch = "aarch64") && !cfg!(windows) {
        true => os + 1,
        false => os,
    }
}];

impl Platform {
    /// The name of the archive.
    pub(super) fn archive(&self) -> String {
        let end = match self.os {
            "windows" => "zip",
            _ => "tar.gz",
        };
        self.file(end)
    }

    /// The name of a file of this platform.
    pub(super) fn file(&self, end: &str) -> String {
        format!("strew-{VERSION}-{}-{}.{end}", self.os, self.arch)
    }

    /// What a program's name ends with.
    pub(super) fn exe(&self) -> &'static str {
        match self.os {
            "windows" => ".exe",
            _ => "",
        }
    }

    /// Whether a word means this platform: `all`, its system, or both its names.
    pub(super) fn is_meant(&self, word: &str) -> bool {
        word == "all" || word == self.os || word == format!("{}-{}", self.os, self.arch)
    }
}

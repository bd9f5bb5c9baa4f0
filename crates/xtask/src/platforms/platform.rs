//! The platforms, and what a Linux machine needs for each.

use clap::ValueEnum;

/// A platform that is tried.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    /// amd64, by mingw; runs under wine
    Windows,
    /// amd64 and arm64, checked with zig as the C compiler
    Macos,
    /// By a cross compiler; runs under qemu
    LinuxArm64,
    /// WebAssembly: what `cargo xtask play` puts into a page is checked
    Browser,
}

/// A program that is needed, and how it is installed.
pub(super) struct Need {
    /// Its name in `PATH`, or other places, the first that is there.
    pub(super) programs: &'static [&'static str],
    pub(super) install: &'static str,
}

const MINGW: Need = Need {
    programs: &["x86_64-w64-mingw32-gcc"],
    install: "apt-get install gcc-mingw-w64-x86-64-win32",
};

const WINE: Need = Need {
    programs: &["wine64", "/usr/lib/wine/wine64"],
    install: "apt-get install wine64",
};

const ARM_COMPILER: Need = Need {
    programs: &["aarch64-linux-gnu-gcc"],
    install: "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
};

const QEMU: Need = Need {
    programs: &["qemu-aarch64", "qemu-aarch64-static"],
    install: "apt-get install qemu-user",
};

/// WebAssembly whose operating system the page is.
pub(crate) const TARGET_OF_BROWSER: &str = "wasm32-wasip1";

impl Platform {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Windows => "windows",
            Self::Macos => "macos",
            Self::LinuxArm64 => "linux-arm64",
            Self::Browser => "browser",
        }
    }

    /// Targets of Rust.
    pub(super) fn targets(self) -> &'static [&'static str] {
        match self {
            Self::Windows => &["x86_64-pc-windows-gnu"],
            Self::Macos => &["aarch64-apple-darwin", "x86_64-apple-darwin"],
            Self::LinuxArm64 => &["aarch64-unknown-linux-gnu"],
            Self::Browser => &[TARGET_OF_BROWSER],
        }
    }

    /// The C compiler and the program that runs others, in this order. Zig comes from Python, and is no program in `PATH`.
    pub(super) fn needs(self) -> &'static [Need] {
        match self {
            Self::Windows => &[MINGW, WINE],
            Self::Macos | Self::Browser => &[],
            Self::LinuxArm64 => &[ARM_COMPILER, QEMU],
        }
    }

    /// True if its programs run here.
    pub(super) fn runs(self) -> bool {
        matches!(self, Self::Windows | Self::LinuxArm64)
    }
}

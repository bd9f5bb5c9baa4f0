//! The identity of this process: its host name, and a unique name per start.

use std::fmt::Write;

use rustls::crypto::aws_lc_rs;

/// The name of this host; in a pod, the pod's name.
pub fn hostname() -> String {
    crate::platform::hostname()
}

/// 16 unpredictable random bytes.
pub fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let provider = aws_lc_rs::default_provider();
    if provider.secure_random.fill(&mut bytes).is_err() {
        // Without a source of randomness, the time and the process id distinguish two replicas.
        let nanos = crate::clock::Clock::new().now().0;
        bytes[..8].copy_from_slice(&nanos.to_be_bytes());
        bytes[8..12].copy_from_slice(&std::process::id().to_be_bytes());
    }
    bytes
}

/// A name in an election, new after each restart. Source: spec/scheduler §5.5, `<hostname>_<uuid>`.
pub fn of_replica(hostname: &str, random: [u8; 16]) -> String {
    let mut name = format!("{hostname}_");
    for (i, byte) in random.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            name.push('-');
        }
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// The UUID of these bytes. Source: RFC 9562 §5.4 (version 4).
pub fn uuid(mut random: [u8; 16]) -> String {
    random[6] = random[6] & 0x0f | 0x40;
    random[8] = random[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (i, byte) in random.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_says_that_it_is_random() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
    }

    #[test]
    fn a_replica_has_another_name_after_each_restart() {
        let name = of_replica("node-1", [0xab; 16]);
        assert_eq!(name, "node-1_abababab-abab-abab-abab-abababababab");
        assert_ne!(random(), random());
        assert!(!hostname().is_empty());
    }
}

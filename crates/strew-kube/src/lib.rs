//! A real Kubernetes API server as strew's world.

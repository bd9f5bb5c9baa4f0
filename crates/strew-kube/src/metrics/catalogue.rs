//! Metrics of the process, with the names that other Kubernetes processes use.

strew_scheduler::catalogue! {
    LEADER = "leader_election_master_status", Gauge, ["name"],
        "1 if this process holds the lease of this name, else 0";
    REST_REQUESTS = "rest_client_requests_total", Counter, ["code", "method", "host"],
        "Requests to the API server, by status code, or `<error>` if there was no answer";
    OBJECTS_UNREADABLE = "strew_objects_unreadable", Gauge, ["kind"],
        "Objects that cannot be decoded; their last readable version is used, or none";
    PANICS = "strew_task_panics_total", Counter, [],
        "Panics of tasks; each is logged, and its work is retried or given up";
    PROCESS_CPU = "process_cpu_seconds_total", Counter, [],
        "CPU time, user and system";
    PROCESS_RESIDENT = "process_resident_memory_bytes", Gauge, [], "Resident memory";
    PROCESS_VIRTUAL = "process_virtual_memory_bytes", Gauge, [], "Virtual memory";
    PROCESS_OPEN_FDS = "process_open_fds", Gauge, [], "Open file descriptors";
    PROCESS_MAX_FDS = "process_max_fds", Gauge, [], "Limit of open file descriptors";
    PROCESS_START = "process_start_time_seconds", Gauge, [], "Start of the process as a Unix time";
    BUILD = "strew_build_info", Gauge, ["version", "kubernetes"],
        "1, labelled with strew's version and the Kubernetes version whose decisions it reproduces";
}

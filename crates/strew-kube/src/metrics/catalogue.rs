//! What is told beside the machine's metrics, with the names that other processes of a cluster use.

strew_scheduler::catalogue! {
    LEADER = "leader_election_master_status", Gauge, ["name"],
        "1 if this process leads by the lease of this name, 0 if it follows";
    REST_REQUESTS = "rest_client_requests_total", Counter, ["code", "method", "host"],
        "Requests to the API server, by status code or `<error>` where there was no answer";
    OBJECTS_UNREADABLE = "strew_objects_unreadable", Gauge, ["kind"],
        "Objects as somebody wrote them that cannot be read: they count as they were before, or not at all";
    PANICS = "strew_task_panics_total", Counter, [],
        "Panics of tasks: each is logged, what waited for the task goes on without it or tries again";
    PROCESS_CPU = "process_cpu_seconds_total", Counter, [],
        "Processor time, user and system";
    PROCESS_RESIDENT = "process_resident_memory_bytes", Gauge, [], "Memory that is resident";
    PROCESS_VIRTUAL = "process_virtual_memory_bytes", Gauge, [], "Address space that is in use";
    PROCESS_OPEN_FDS = "process_open_fds", Gauge, [], "Files and sockets that are open";
    PROCESS_MAX_FDS = "process_max_fds", Gauge, [], "Files and sockets that may be open";
    PROCESS_START = "process_start_time_seconds", Gauge, [], "When the process started, since 1970";
    BUILD = "strew_build_info", Gauge, ["version", "kubernetes"],
        "1, with the version of strew and that of Kubernetes whose decisions it takes";
}

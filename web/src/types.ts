// The JSON that the page is drawn from. docs/schema/report.json describes the report.

export type Counts = Record<string, number>;

export interface Place { file: string; line: number; column: number }
export interface Finding {
  code: string;
  severity: "error" | "warning" | "note";
  object?: string | null;
  place?: Place | null;
  numbers?: Record<string, number>;
  message: string;
  help?: string | null;
  fix?: { change: string; verified?: string | null } | null;
}
export interface Constraint {
  source: string;
  whenUnsatisfiable: string;
  maxSkew: number;
  minDomains?: number | null;
  selector: string;
  matchLabelKeys?: string[];
  withoutEffect?: boolean;
}
export interface Spread {
  by: string;
  constraint?: Constraint | null;
  domains: number;
  counts: Counts;
  skew: number;
  own?: { counts: Counts; skew: number } | null;
  warning?: string | null;
  others?: number;
  /** Of a large cluster, instead of `counts`: pods of a domain, and how many domains have so many, the largest first. */
  groups?: [count: number, domains: number][];
}
export interface Pending { count: number; blockedBy: string[]; message: string; pod: string }
export interface Workload {
  of: string;
  namespace: string;
  replicas: number;
  ready: number;
  terminating?: number;
  pending: Pending[];
  spread: Spread[];
}
export interface Loss {
  of: string; verdict: string; wanted: number; ready: number; fewest: number;
  secondsShort: number; secondsNone: number; cause?: string; ofDump?: boolean;
}
export interface Expectation { text: string; held: boolean; open?: boolean; at?: string; why?: string; cause?: string | null }
export interface Step {
  name?: string | null;
  began: string;
  ended: string;
  state: string;
  verdict: string;
  why?: string[];
  verbs: string[];
  chosen?: string[];
  refused?: { verb: string; why: string; breach: boolean }[];
  expectations: Expectation[];
  findings?: Finding[];
  losses?: Loss[];
  pods: { workloads: number; nodes: number; pods: number; placed: number; pending: number };
  workloads: Workload[];
}
export interface RunReport { seed: number; held: boolean; ended: string; always: Expectation[]; steps: Step[] }
export interface Variant { name: string; must: string; result: string; seeds: number[]; broken: number; runs: RunReport[] }
export interface Scenario { file: string; name: string; story?: string | null; variants: Variant[] }
export interface Report {
  kind: string;
  summary: { runs: number; held: number; broken: number; red: boolean; warnings: number; interrupted: boolean };
  findings: Finding[];
  scenarios: Scenario[];
}
/** The verdict on a variant, over all its seeds; `again` is the command that plays a seed up to its breach. */
export interface Verdict {
  scenario: string; variant: string; must: string; state: string; result: string; red: boolean; shown: number | null;
  played: number; nBroken: number;
  steps: { when: string | null; broken: number; open: number }[];
  broken: { seed: number; at: string; text: string; why: string | null; again: string }[];
}

/** A line of `--events`. */
export interface Line {
  type: string;
  at?: string;
  key?: string;
  changed?: Record<string, unknown>;
  step?: string;
  verb?: string;
  refused?: string;
  regarding?: string;
  warning?: boolean;
  reason?: string;
  note?: string;
  source?: string;
  scenario?: string; file?: string; variant?: string; seed?: number; replay?: string;
}

/** What is counted at a moment; a line changes the lines before it. */
export interface SeriesLine {
  at?: string;
  type: "workload" | "spread" | "ledger" | "why" | "fleet" | "room";
  step?: number | null; explanation?: Explanation;
  /** Of each node, in thousandths of a CPU; `nodes`, with spaces between, and `allocatable` as in the line before if absent. */
  requested?: number[]; nodes?: string; allocatable?: number[];
  of?: string; ready?: number; pending?: number; terminating?: number;
  by?: string; changed?: Record<string, number | null>; skew?: number;
  target?: string; rows?: Subset[];
  row?: PlacementRow | ClusterRow | null;
}
export interface Subset {
  subset: string; limit: number | null; pods: number; counted: number | null; missing: number | null;
  creating: number; deleting: number; costs?: Counts; conditions: string[];
}

// A cluster: its rows by key, as strew ui makes them.

export interface ClusterAbout { kind: "Cluster"; title: string; version?: string; live?: boolean }
export interface Within { within: number; all: number }
export interface Sums { workloads: number; nodes: number; pods: number; ready: number; pending: number; hard: Within; soft: Within }
/** How complete the rows are: `failing` since `since`, in milliseconds of Unix time. */
export interface Standing { whole: boolean; leftOut: string[]; failing: string[]; since: number | null; unreadable: number }
/** `boxes`: of a large cluster, its pods by box. */
export interface ClusterWorkload extends Workload { leftAlone: number; boxes?: Record<string, number> }
export interface ClusterPod { of: string; node: string | null; ready: boolean; terminating: boolean; revision: string | null; created: number }
export interface ClusterNode {
  labels: Record<string, string>; ready: boolean; cordoned: boolean; tainted: boolean; allocatable?: string; requested?: string;
}
/** A large cluster, instead of its nodes and pods; crates/strew-view/src/heat.rs says what each number is. */
export interface Heat { keys: string[]; boxes: HeatBox[] }
export interface HeatBox {
  path: string[]; nodes: number; notReady: number; cordoned: number; pods: number; milliCpu: number; requestedMilliCpu: number;
  byUse: number[]; nodesPerCell: number; used: number[]; away: number[];
}
/** Of a large run: what is seen at the end of a step, or at the start; `own`: the pods of each workload by box. */
export interface Picture extends Heat { step: number | null; own: Record<string, Record<string, number>> }
/** A WorkloadSpread with its subsets. */
export interface LedgerRow { of: string; target: string | null; rows: Subset[] }

// A fleet: Placements and clusters by key, as strew place and strew ui make them.

/** `changes`: what is asked about, `zone=eu-1 is lost`. */
export interface FleetAbout { kind: "Fleet"; title: string; changes: string | null }
export interface FleetData { report: FleetAbout; data: { rows: Rows } }
export interface Condition { type: string; reason: string; message: string; good: boolean }
export interface Term {
  topologyKey: string; maxSkew?: number; whenUnsatisfiable?: string; minGroups?: number; maxGroups?: number;
}
/** `minimum`: what its skew is measured from; absent if it is compared with nothing. */
export interface Topology { topology: string[]; selected: number; clusters: number; weight?: number | null; skew?: number; minimum?: number }
export interface Moved { clusterName: string; topology?: string[]; reason?: string }
export interface PlacementRow {
  namespace: string; name: string; wanted: number | null;
  state: "ignored" | "misconfigured" | "short" | "uneven" | "asAsked";
  terms: Term[];
  clusters: { name: string; group: number; replicas: number | null }[];
  conditions: Condition[];
  topologies: Topology[];
  warning?: string | null;
  help?: string[];
  notSelected?: { message: string; count: number; clusters: string[] }[];
  difference?: { gone: Moved[]; new: Moved[]; stay: string[]; replicas?: { clusterName: string; before: number; after: number }[] } | null;
}
export interface ClusterRow { labels: Record<string, string>; claims: Record<string, string>; available: boolean; tainted: boolean }

export type Rows = Record<string, unknown>;
export interface ClusterData { report: ClusterAbout; data?: { rows: Rows } }

/**
 * `sums`: for each run that is too large to be seen pod by pod what is seen instead. `explain`: for each run the files and
 * options of the command that explains a pod.
 */
export interface Data { report: Report; verdicts: Verdict[]; runs: Line[][]; series: SeriesLine[][]; sums: (Picture[] | null)[]; explain: string[] }

// Why a pod stays Pending: docs/schema has PodExplanation.

export interface Domain {
  value: string; pods: number; nodes: number; eligibleNodes: number; usableNodes: number; openNodes: number;
  skew?: { skew: number; maxSkew: number; allowed: boolean; sum: string; shortSum: string };
  otherReasons?: { reason: string; nodes: number }[];
}
export interface ExplainedConstraint { topologyKey: string; maxSkew: number; minimum?: number; domains: Domain[] }
export interface Explanation {
  metadata: { namespace: string; name: string }; message: string; summary?: string; nodes: number; feasible: number;
  constraints: { hard: ExplainedConstraint[]; soft: ExplainedConstraint[] };
  domainsLeftOut: number[];
}

// An audit: docs/schema/audit.json describes the report.

export interface AuditRow {
  kind: string; namespace: string; name: string; verdict: string;
  wanted: number; before: number; atOnce: number; fewest: number; ready: number;
  secondsShort: number; secondsWithoutReady: number;
  readyOverTime?: { second: number; ready: number }[];
  budgets?: { name: string; healthy: number; asks: number }[];
  sum: string;
  cause?: { code: string; text: string };
  seeds?: number;
}
export interface AuditCase {
  event: string; domains: string[]; atRest: boolean; seconds: number;
  headroom: { needsMilliCpu: number; freeMilliCpu: number; needsBytes: number; freeBytes: number };
  workloads: AuditRow[];
  services: { namespace: string; name: string; before: number; atOnce: number; callers?: string[] }[];
  blocked?: { object: string; pods: number; code: string; why: string }[];
}
export interface Fix { of: string; change: string; from: string; to: string; patches: unknown[] }
export interface AuditReport {
  kind: "Audit"; cluster?: string; by: string; seed: number; seeds?: number;
  domains: { name: string; nodes: number; pods: number }[];
  nodesWithoutKey: number; workloads: number; cases: AuditCase[];
  stuckBudgets?: { namespace: string; name: string; pods: number; asks: number }[];
  fixes?: Fix[];
}
/** `hurt` has for each case the places of the workloads on which a person should act; `patches` the text of each fix. */
export interface AuditData { report: AuditReport; files: string[]; fails: boolean; hurt: number[][]; patches: string[] }

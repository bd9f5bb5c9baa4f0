// An API server as far as strew ui asks it: which kinds there are, lists, and watches. Without TLS, for tests.

import { createServer } from "node:http";

/** Path of the list: kind. */
const KINDS = {
  "/api/v1/nodes": "Node", "/api/v1/pods": "Pod", "/api/v1/services": "Service",
  "/api/v1/replicationcontrollers": "ReplicationController",
  "/apis/apps/v1/deployments": "Deployment", "/apis/apps/v1/replicasets": "ReplicaSet",
  "/apis/apps/v1/statefulsets": "StatefulSet", "/apis/apps/v1/daemonsets": "DaemonSet",
  "/apis/batch/v1/jobs": "Job", "/apis/batch/v1/cronjobs": "CronJob",
  "/apis/apps.kruise.io/v1beta1/workloadspreads": "WorkloadSpread",
  "/apis/cluster.open-cluster-management.io/v1beta1/placements": "Placement",
  "/apis/cluster.open-cluster-management.io/v1beta1/placementdecisions": "PlacementDecision",
  "/apis/cluster.open-cluster-management.io/v1/managedclusters": "ManagedCluster",
};

const versionOf = (path) => path.split("/").slice(path.startsWith("/api/") ? 2 : 2, -1).join("/");

function discovery(root) {
  const groups = new Map();
  for (const [path, kind] of Object.entries(KINDS)) {
    if (!path.startsWith(`${root}/`)) continue;
    const parts = versionOf(path).split("/"), version = parts.pop(), group = parts.pop() ?? "";
    if (!groups.has(group)) groups.set(group, { metadata: { name: group }, versions: [] });
    const { versions } = groups.get(group);
    if (!versions.some((one) => one.version === version)) versions.push({ version, resources: [] });
    versions.find((one) => one.version === version).resources.push({ resource: path.split("/").pop(), responseKind: { group, version, kind }, scope: "Namespaced" });
  }
  return { kind: "APIGroupDiscoveryList", items: [...groups.values()] };
}

export async function api() {
  const objects = new Map(Object.keys(KINDS).map((path) => [path, new Map()]));
  const asked = new Set(), watchers = new Set(), sockets = new Set();
  let version = 100, forgotten = 0, refuses = false, port = 0;

  const answer = (response, code, body) => {
    response.writeHead(code, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  const gone = { kind: "Status", apiVersion: "v1", status: "Failure", code: 410, reason: "Expired", message: "too old resource version" };
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://x"), path = url.pathname;
    asked.add(`${request.method} ${path}`);
    if (path === "/version") return answer(response, 200, { major: "1", minor: "36", gitVersion: "v1.36.3", gitCommit: "", gitTreeState: "", buildDate: "", goVersion: "", compiler: "", platform: "" });
    if (path === "/api" || path === "/apis") return answer(response, 200, discovery(path));
    if (!objects.has(path)) return answer(response, 404, { kind: "Status", apiVersion: "v1", status: "Failure", code: 404, reason: "NotFound", message: "not found" });
    if (url.searchParams.get("watch") !== "true") {
      const items = [...objects.get(path).values()];
      return answer(response, 200, { apiVersion: versionOf(path), kind: `${KINDS[path]}List`, metadata: { resourceVersion: String(version) }, items });
    }
    response.writeHead(200, { "content-type": "application/json" });
    if (Number(url.searchParams.get("resourceVersion")) < forgotten) {
      return response.end(`${JSON.stringify({ type: "ERROR", object: gone })}\n`);
    }
    response.flushHeaders();
    const watcher = { path, response };
    watchers.add(watcher);
    response.on("close", () => watchers.delete(watcher));
  });
  server.on("connection", (socket) => {
    if (refuses) return socket.destroy();
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  port = server.address().port;

  const pathOf = (kind) => Object.keys(KINDS).find((path) => KINDS[path] === kind);
  const key = (object) => `${object.metadata.namespace ?? ""}/${object.metadata.name}`;
  const send = (path, type, object) => {
    for (const watcher of watchers) if (watcher.path === path) watcher.response.write(`${JSON.stringify({ type, object })}\n`);
  };
  return {
    asked, port,
    /** Sets objects, and tells who watches. */
    set(...all) {
      for (const object of all) {
        const path = pathOf(object.kind), known = objects.get(path), is = known.has(key(object));
        object.metadata.resourceVersion = String(++version);
        known.set(key(object), object);
        send(path, is ? "MODIFIED" : "ADDED", object);
      }
    },
    remove(object) {
      const path = pathOf(object.kind);
      objects.get(path).delete(key(object));
      object.metadata.resourceVersion = String(++version);
      send(path, "DELETED", object);
    },
    /** Ends all connections and takes no new ones, until `back`. */
    away() { refuses = true; for (const socket of sockets) socket.destroy(); },
    /** Takes connections again; events before are forgotten (410). */
    back() { refuses = false; forgotten = version + 1; version += 1; },
    all: () => [...objects.values()].flatMap((each) => [...each.values()]),
    kubeconfig: () => JSON.stringify({
      apiVersion: "v1", kind: "Config", "current-context": "x", users: [{ name: "u", user: {} }],
      clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }], contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    }),
    close() { for (const socket of sockets) socket.destroy(); server.close(); },
  };
}

const ZONE = "topology.kubernetes.io/zone";

export function node(name, zone, more = {}) {
  const room = { cpu: "8", memory: "16Gi", pods: "110" };
  return {
    apiVersion: "v1", kind: "Node", metadata: { name, uid: `node-${name}`, labels: { [ZONE]: zone, "kubernetes.io/hostname": name }, creationTimestamp: "2026-01-01T00:00:00Z", ...more },
    spec: {}, status: { capacity: room, allocatable: room, conditions: [{ type: "Ready", status: "True", reason: "x", message: "x", lastHeartbeatTime: null, lastTransitionTime: null }] },
  };
}

/** A Deployment with its ReplicaSet, and its pods on these nodes; `null`: Pending. */
export function workload(name, nodes, { message = "0/3 nodes are available: 3 Insufficient cpu.", soft = false, cpu = "100m" } = {}) {
  const labels = { app: name }, hash = "7d9f";
  const spec = {
    containers: [{ name: "c", image: "i", env: [{ name: "PASSWORD", value: "hunter2" }], args: ["--token=hunter2"], resources: { requests: { cpu } } }],
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: ZONE, whenUnsatisfiable: soft ? "ScheduleAnyway" : "DoNotSchedule", labelSelector: { matchLabels: labels } }],
  };
  const template = { metadata: { labels }, spec }, created = "2026-01-01T00:00:00Z";
  const owner = (kind, of) => [{ apiVersion: "apps/v1", kind, name: of, uid: `${kind}-${of}`, controller: true }];
  const meta = (kind, of) => ({ namespace: "shop", name: of, uid: `${kind}-${of}`, creationTimestamp: created, labels, generation: 1 });
  const status = { replicas: nodes.length, readyReplicas: nodes.length, observedGeneration: 1 };
  const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: { ...meta("Deployment", name), annotations: { "deployment.kubernetes.io/revision": "1", note: "hunter2" } }, spec: { replicas: nodes.length, selector: { matchLabels: labels }, template, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } } }, status: { ...status, updatedReplicas: nodes.length, availableReplicas: nodes.length } };
  const set = { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { ...meta("ReplicaSet", `${name}-${hash}`), labels: { ...labels, "pod-template-hash": hash }, annotations: { "deployment.kubernetes.io/revision": "1" }, ownerReferences: owner("Deployment", name) }, spec: { replicas: nodes.length, selector: { matchLabels: { ...labels, "pod-template-hash": hash } }, template: { ...template, metadata: { labels: { ...labels, "pod-template-hash": hash } } } }, status };
  const pods = nodes.map((on, n) => pod(`${name}-${hash}-${n}`, on, { message, set, spec }));
  return [deployment, set, ...pods];
}

/** A pod of a ReplicaSet. */
export function pod(name, on, { message, set, spec }) {
  const condition = (type, status, more) => ({ type, status, lastProbeTime: null, lastTransitionTime: "2026-01-01T00:00:00Z", ...more });
  const conditions = on === null
    ? [condition("PodScheduled", "False", { reason: "Unschedulable", message })]
    : [condition("PodScheduled", "True"), condition("Ready", "True")];
  return {
    apiVersion: "v1", kind: "Pod",
    metadata: { namespace: "shop", name, uid: `Pod-${name}`, creationTimestamp: "2026-01-01T00:00:00Z", labels: set.spec.selector.matchLabels, ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: set.metadata.name, uid: set.metadata.uid, controller: true }] },
    spec: { ...spec, schedulerName: "default-scheduler", ...(on === null ? {} : { nodeName: on }) },
    status: { phase: on === null ? "Pending" : "Running", conditions },
  };
}

/** A WorkloadSpread over a Deployment, with this limit of its first subset. */
export function workloadSpread(name, target, subsets) {
  return {
    apiVersion: "apps.kruise.io/v1beta1", kind: "WorkloadSpread",
    metadata: { namespace: "shop", name, uid: `ws-${name}`, creationTimestamp: "2026-01-01T00:00:00Z" },
    spec: { targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: target }, subsets: subsets.map(([subset, maxReplicas]) => ({ name: subset, ...(maxReplicas === undefined ? {} : { maxReplicas }) })) },
    status: { subsetStatuses: subsets.map(([subset, maxReplicas, replicas]) => ({ name: subset, replicas, missingReplicas: maxReplicas === undefined ? -1 : maxReplicas - replicas, conditions: [] })) },
  };
}

/** A pod as a WorkloadSpread's webhook marks it. */
export const marked = (one, spread, subset, cost) => ({ ...one, metadata: { ...one.metadata, annotations: {
  "apps.kruise.io/matched-workloadspread": JSON.stringify({ name: spread, subset }), "controller.kubernetes.io/pod-deletion-cost": cost } } });

const OCM = "cluster.open-cluster-management.io";

export function cluster(name, region, zone) {
  return { apiVersion: `${OCM}/v1`, kind: "ManagedCluster", metadata: { name, uid: `c-${name}`, labels: { region, zone }, creationTimestamp: "2026-01-01T00:00:00Z" }, spec: { hubAcceptsClient: true } };
}

/** A Placement by region with its PlacementDecision. */
export function placement(name, wanted, clusters) {
  const condition = (type, status, reason, message) => ({ type, status, reason, message, lastTransitionTime: "2026-01-01T00:00:00Z" });
  const meta = (of, labels) => ({ namespace: "fleet", name: of, uid: `p-${of}`, labels, creationTimestamp: "2026-01-01T00:00:00Z" });
  const is = clusters.length >= wanted;
  return [
    { apiVersion: `${OCM}/v1beta1`, kind: "Placement", metadata: meta(name, {}),
      spec: { numberOfClusters: wanted, spreadPolicy: { spreadConstraints: [{ topologyKey: "region", topologyKeyType: "Label", maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" }] } },
      status: { numberOfSelectedClusters: clusters.length, conditions: [condition("PlacementSatisfied", is ? "True" : "False", is ? "AllDecisionsScheduled" : "NotAllDecisionsScheduled", is ? "All cluster decisions scheduled" : "one is missing")] } },
    { apiVersion: `${OCM}/v1beta1`, kind: "PlacementDecision", metadata: meta(`${name}-decision-1`, { [`${OCM}/placement`]: name, [`${OCM}/decision-group-index`]: "0" }),
      status: { decisions: clusters.map((clusterName) => ({ clusterName, reason: "" })) } },
  ];
}

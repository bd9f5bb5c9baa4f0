// strew in Headlamp: a source of the map with the zones of workloads, and a section on workloads.
// It reads the data of `strew ui --allow-origin ORIGIN`, which counts.

import { ConfigStore, registerDetailsViewSection, registerMapSource, registerPluginSettings } from '@kinvolk/headlamp-plugin/lib';
import { SectionBox } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import React, { useMemo } from 'react';
import { graph, workload } from './rows';
import { Spread } from './Spread';
import { DEFAULT_URL, PLUGIN, useRows } from './useRows';

const settings = new ConfigStore<{ url?: string }>(PLUGIN);
const KINDS = ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job'];

function useData() {
  const url = settings.useConfig()()?.url || DEFAULT_URL;
  const { rows } = useRows(url);
  return useMemo(() => (rows ? graph(rows) : null), [rows]);
}

registerMapSource({ id: 'strew', label: 'Spread over zones (strew)', isEnabledByDefault: false, useData });

interface Named { kind: string; metadata: { namespace?: string; name: string } }

function Section({ resource }: { resource: Named }) {
  const url = settings.useConfig()()?.url || DEFAULT_URL;
  const { rows, error } = useRows(url);
  const found = rows && workload(rows, resource.kind, resource.metadata.namespace ?? '', resource.metadata.name);
  return (
    <SectionBox title="Spread">
      {error && <p role="alert">! {error}. Start it with: strew ui --port 8765 --allow-origin {window.location.origin}</p>}
      {found ? <Spread workload={found} /> : rows && <p>strew ui does not show this workload.</p>}
    </SectionBox>
  );
}

registerDetailsViewSection(({ resource }: { resource: Named }) => (KINDS.includes(resource?.kind) ? <Section resource={resource} /> : null));

function Settings({ data, onDataChange }: { data?: { url?: string }; onDataChange?: (data: { url: string }) => void }) {
  return (
    <label>
      Address of strew ui{' '}
      <input type="url" value={data?.url ?? DEFAULT_URL} onChange={(event) => onDataChange?.({ url: event.target.value })} />
    </label>
  );
}

registerPluginSettings(PLUGIN, Settings, true);

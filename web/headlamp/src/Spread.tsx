// How one workload is spread: a row a constraint, a number a domain.

import React from 'react';
import { isOver, short, type Workload, words } from './rows';

export function Spread({ workload }: { workload: Workload }) {
  const { ready, replicas, pending, spread } = workload;
  return (
    <div>
      <p>
        {ready} of {replicas} ready
      </p>
      {pending.map(({ count, message, pod }) => (
        <p key={pod}>
          <strong>✗ {count} Pending</strong> ({pod}
          {count > 1 ? ', …' : ''}): {message}
        </p>
      ))}
      <table>
        <thead>
          <tr>
            <th scope="col" style={{ textAlign: 'left' }}>by</th>
            <th scope="col" style={{ textAlign: 'left' }}>constraint</th>
            <th scope="col" style={{ textAlign: 'left' }}>pods by domain</th>
          </tr>
        </thead>
        <tbody>
          {spread.map((one, i) => (
            <tr key={`${one.by} ${i}`}>
              <th scope="row" style={{ textAlign: 'left', paddingRight: 16 }}>{short(one.by)}</th>
              <td style={{ paddingRight: 16 }}>
                {isOver(one) ? '✗ ' : '✓ '}
                {words(one)}
              </td>
              <td>{domains(one.counts)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const DOMAINS_MAX = 12;

/** `zone-a 3, zone-b 2`, the fullest first. */
function domains(counts: Record<string, number>): string {
  const all = Object.entries(counts).sort(([a, n], [b, m]) => m - n || a.localeCompare(b, 'en', { numeric: true }));
  const shown = all.slice(0, DOMAINS_MAX).map(([name, n]) => `${name} ${n}`);
  if (all.length > DOMAINS_MAX) shown.push(`and ${all.length - DOMAINS_MAX} more`);
  return shown.join(', ');
}

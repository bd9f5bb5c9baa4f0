import { render, screen } from '@testing-library/react';
import React from 'react';
import { graph, rowsOf, workload, type Workload } from './rows';
import { Spread } from './Spread';

const ZONE = 'topology.kubernetes.io/zone';
const node = (zone: string, ready = true) => ({ labels: { [ZONE]: zone }, ready });
const web: Workload = {
  of: 'deployment/web', namespace: 'shop', replicas: 5, ready: 4,
  pending: [{ count: 1, message: '0/3 nodes are available', pod: 'web-5' }],
  spread: [
    { by: ZONE, constraint: { whenUnsatisfiable: 'DoNotSchedule', maxSkew: 1 }, counts: { a: 3, b: 1, c: 0 }, skew: 3 },
    { by: 'kubernetes.io/hostname', constraint: null, counts: { n1: 3, n2: 1 }, skew: 2 },
  ],
};
const rows = { 'node n1': node('a'), 'node n2': node('b'), 'node n3': node('c', false), 'workload Deployment shop/web': web };

test('the map has the zones, and the counts of strew on its edges', () => {
  const { nodes, edges } = graph(rows);
  expect(nodes.map(({ label, status }) => [label, status])).toEqual([['a', 'success'], ['b', 'success'], ['c', 'error'], ['shop/web', 'error']]);
  expect(nodes[2].subtitle).toBe('1 node, 1 not ready');
  expect(nodes[3].subtitle).toBe('4 of 5 ready; hard, maxSkew 1: skew 3, over maxSkew');
  expect(edges.map(({ source, target, label }) => [source, target, label])).toEqual([
    ['strew workload Deployment shop/web', 'strew zone a', '3'], ['strew workload Deployment shop/web', 'strew zone b', '1'],
  ]);
});

test('a workload is found by kind, namespace and name', () => {
  expect(workload(rows, 'Deployment', 'shop', 'web')).toBe(web);
  expect(workload(rows, 'StatefulSet', 'shop', 'web')).toBeUndefined();
});

test('what is no data of strew ui is refused', () => {
  for (const wrong of [null, {}, { rows: 1 }, 'x']) expect(() => rowsOf(wrong)).toThrow('not the data of strew ui');
  expect(rowsOf({ rows })).toBe(rows);
});

test('the section says the counts, the verdict and why pods are Pending, with names as text', () => {
  const hostile = '<img src=x onerror=alert(1)>';
  render(<Spread workload={{ ...web, pending: [{ count: 2, message: hostile, pod: 'web-5' }] }} />);
  expect(screen.getByText('4 of 5 ready')).toBeTruthy();
  expect(screen.getByRole('row', { name: 'zone ✗ hard, maxSkew 1: skew 3, over maxSkew a 3, b 1, c 0' })).toBeTruthy();
  expect(screen.getByRole('row', { name: 'node ✓ skew 2; no constraint n1 3, n2 1' })).toBeTruthy();
  expect(document.querySelector('img')).toBeNull();
  expect(document.body.textContent).toContain(hostile);
});

// Times of the log and of reports: `1h2m3.5s` after the start.

const SIZES: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9 };

/** The last time that was read: lines of a log come in order, many at one time. */
let last = "", lastSeconds = 0;

/** Seconds; 0 for a text without a time. */
export function seconds(clock: string): number {
  if (clock === last) return lastSeconds;
  let total = 0;
  for (const [, digits, unit] of clock.matchAll(/([\d.]+)(ms|us|µs|ns|h|m|s)/g)) {
    total += Number(digits) * (SIZES[unit!] ?? 0);
  }
  [last, lastSeconds] = [clock, total];
  return total;
}

/** As a person says it: `2.9 s`, `41 s`, `12 m 20 s`, `3 h 5 m`. */
export function spoken(time: number): string {
  const tenths = time.toFixed(1);
  if (time < 10 && !tenths.endsWith(".0")) return `${tenths} s`;
  const whole = Math.round(time);
  const h = Math.floor(whole / 3600), m = Math.floor(whole / 60) % 60, s = whole % 60;
  if (h) return m ? `${h} h ${m} m` : `${h} h`;
  if (m) return s ? `${m} m ${s} s` : `${m} m`;
  return `${s} s`;
}

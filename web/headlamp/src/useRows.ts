// The data of strew ui, read again every few seconds.

import { useEffect, useState } from 'react';
import { type Rows, rowsOf } from './rows';

export const PLUGIN = 'strew-headlamp';
export const DEFAULT_URL = 'http://127.0.0.1:8765/';
const EVERY = 5_000;

export interface Read { rows?: Rows; error?: string }

/** The rows of the strew ui at this address; the last ones stay while it cannot be read. */
export function useRows(url: string): Read {
  const [read, setRead] = useState<Read>({});
  useEffect(() => {
    let ended = false;
    const ask = async () => {
      try {
        const answer = await fetch(new URL('data.json', url), { credentials: 'omit' });
        if (!answer.ok) throw new Error(`it answers ${answer.status}`);
        const rows = rowsOf(await answer.json());
        if (!ended) setRead({ rows });
      } catch (error) {
        if (!ended) setRead((last) => ({ ...last, error: `strew ui at ${url} cannot be read: ${(error as Error).message}` }));
      }
    };
    void ask();
    const timer = setInterval(ask, EVERY);
    return () => {
      ended = true;
      clearInterval(timer);
    };
  }, [url]);
  return read;
}

// Runs strew apart from the page, which stays quick, and can end a run by ending this worker.

import { run } from "./wasi.ts";
import type { Call, Ended } from "./wasi.ts";

export interface Question {
  module: WebAssembly.Module;
  call: Call;
}
export type Answer = { ended: Ended; milliseconds: number } | { failed: string } | { percent: number };

self.onmessage = ({ data }: MessageEvent<Question>) => {
  const begin = performance.now();
  let answer: Answer;
  try {
    const ended = run(data.module, data.call, (percent) => self.postMessage({ percent } satisfies Answer));
    answer = { ended, milliseconds: performance.now() - begin };
  } catch (error) {
    answer = { failed: String(error) };
  }
  self.postMessage(answer);
};

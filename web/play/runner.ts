// strew in a worker: one run at a time.

import source from "strew:worker";
import type { Call, Ended } from "./wasi.ts";
import type { Answer, Question } from "./worker.ts";

export type Result = { ended: Ended; milliseconds: number } | { failed: string } | "cancelled";

/** The program, which stands in the page as base64 of its gzip: a page that is a file cannot fetch another file. */
export async function program(): Promise<WebAssembly.Module> {
  const element = document.getElementById("program")!;
  const text = element.textContent!.trim();
  element.remove();
  const stream = new Blob([decoded(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  // Compiled while it is unpacked.
  return WebAssembly.compileStreaming(new Response(stream, { headers: { "Content-Type": "application/wasm" } }));
}

function decoded(text: string): Uint8Array<ArrayBuffer> {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

export class Runner {
  readonly #module: Promise<WebAssembly.Module>;
  #worker: Worker | null = null;
  #end: ((result: Result) => void) | null = null;

  constructor(module: Promise<WebAssembly.Module>) {
    this.#module = module;
    this.#worker = worker();
  }

  /** Runs strew; a run that goes on is cancelled first. `progress` is called while it plays many runs. */
  async run(call: Call, progress: (percent: number) => void): Promise<Result> {
    this.cancel();
    const cancelled = new Promise<Result>((resolve) => { this.#end = resolve; });
    const end = this.#end!;
    const module = await Promise.race([this.#module, cancelled]);
    if (!(module instanceof WebAssembly.Module)) return module;
    const running = (this.#worker ??= worker());
    running.onmessage = ({ data }: MessageEvent<Answer>) => {
      if ("percent" in data) progress(data.percent);
      else end(data);
    };
    running.onerror = (event) => end({ failed: event.message });
    running.postMessage({ module, call } satisfies Question);
    const result = await cancelled;
    if (this.#end === end) this.#end = null;
    return result;
  }

  /** Ends the run that goes on, if one does. */
  cancel(): void {
    if (!this.#end) return;
    this.#worker?.terminate();
    this.#worker = null;
    this.#end("cancelled");
    this.#end = null;
  }
}

/** A page that is a file cannot start a worker from another file, but from its own text. */
function worker(): Worker {
  return new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
}

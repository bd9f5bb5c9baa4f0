// The system that strew finds in a page: WASI (snapshot preview 1) with files that are texts in memory. There is no network, no
// process, no link and no other clock than the page's.

export interface Said {
  /** 1: standard output, 2: standard error. */
  fd: 1 | 2;
  text: string;
}

export interface Ended {
  /** strew's exit code. */
  exit: number;
  /** What it wrote, in the order of writing. */
  said: Said[];
  /** The files that it wrote or changed. */
  written: [name: string, bytes: Uint8Array<ArrayBuffer>][];
}

export interface Call {
  /** The words after `strew`. */
  words: string[];
  files: [name: string, text: string][];
  environment: Record<string, string>;
}

/** Errors of WASI. */
const E = { ok: 0, again: 6, badf: 8, exist: 20, inval: 28, isdir: 31, noent: 44, nosys: 52, notdir: 54, notempty: 55 } as const;
const FOLDER = 3, FILE = 4;
/** The only folder that is open from the start: the root, which is also where relative names begin. */
const ROOT = 3;

interface Open {
  path: string;
  /** `null`: a folder. */
  file: File | null;
  at: number;
  append: boolean;
}

interface File {
  bytes: Uint8Array<ArrayBuffer>;
  /** The length; `bytes` has room for more. */
  size: number;
  isWritten: boolean;
}

/** The program ends itself. */
class Exit extends Error {
  constructor(readonly code: number) {
    super(`exit code ${code}`);
  }
}

/** Runs strew once, to its end; `progress` is called while it plays many runs. */
export function run(module: WebAssembly.Module, call: Call, progress: (percent: number) => void): Ended {
  const system = new System(call, progress);
  const instance = new WebAssembly.Instance(module, system.imports(module));
  system.memory = instance.exports["memory"] as WebAssembly.Memory;
  let exit = 0;
  try {
    (instance.exports["_start"] as () => void)();
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    exit = error.code;
  }
  return { exit, said: system.said(), written: system.written() };
}

class System {
  memory!: WebAssembly.Memory;
  readonly #progress: (percent: number) => void;
  readonly #arguments: Uint8Array[];
  readonly #environment: Uint8Array[];
  readonly #files = new Map<string, File>();
  readonly #folders = new Set<string>([""]);
  readonly #open = new Map<number, Open>([[ROOT, { path: "", file: null, at: 0, append: false }]]);
  readonly #said: { fd: 1 | 2; bytes: Uint8Array }[] = [];

  constructor(call: Call, progress: (percent: number) => void) {
    this.#progress = progress;
    const ended = (text: string) => encoder.encode(`${text}\0`);
    this.#arguments = ["strew", ...call.words].map(ended);
    this.#environment = Object.entries(call.environment).map(([name, value]) => ended(`${name}=${value}`));
    for (const [name, text] of call.files) {
      const bytes = encoder.encode(text);
      this.#put(path("", name), { bytes, size: bytes.length, isWritten: false });
    }
  }

  said(): Said[] {
    const decoders = { 1: new TextDecoder(), 2: new TextDecoder() };
    return this.#said.map(({ fd, bytes }) => ({ fd, text: decoders[fd].decode(bytes, { stream: true }) }));
  }

  written(): Ended["written"] {
    const files = [...this.#files].filter(([, file]) => file.isWritten);
    return files.map(([name, file]) => [name, file.bytes.slice(0, file.size)]);
  }

  /** What the program asks for; what is not here is not supported, and says so. */
  imports(module: WebAssembly.Module): WebAssembly.Imports {
    const found: WebAssembly.Imports = {};
    for (const { module: of, name } of WebAssembly.Module.imports(module)) {
      (found[of] ??= {})[name] = this.#calls.get(name) ?? (() => E.nosys);
    }
    return found;
  }

  get #view(): DataView {
    return new DataView(this.memory.buffer);
  }

  #bytes(at: number, length: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, at, length);
  }

  #text(at: number, length: number): string {
    return new TextDecoder().decode(this.#bytes(at, length).slice());
  }

  #put(name: string, file: File): void {
    this.#files.set(name, file);
    for (let at = name.lastIndexOf("/"); at > 0; at = name.lastIndexOf("/", at - 1)) this.#folders.add(name.slice(0, at));
  }

  #list(texts: Uint8Array[], places: number, at: number): number {
    for (const text of texts) {
      this.#view.setUint32(places, at, true);
      this.#bytes(at, text.length).set(text);
      places += 4;
      at += text.length;
    }
    return E.ok;
  }

  #sizes(texts: Uint8Array[], n: number, size: number): number {
    this.#view.setUint32(n, texts.length, true);
    this.#view.setUint32(size, texts.reduce((sum, text) => sum + text.length, 0), true);
    return E.ok;
  }

  /** The buffers of a reading or a writing. */
  *#buffers(at: number, n: number): Generator<Uint8Array> {
    for (let i = 0; i < n; i += 1) yield this.#bytes(this.#view.getUint32(at + 8 * i, true), this.#view.getUint32(at + 8 * i + 4, true));
  }

  #stat(at: number, type: number, size: number): number {
    this.#bytes(at, 64).fill(0);
    this.#view.setUint8(at + 16, type);
    this.#view.setBigUint64(at + 24, 1n, true);
    this.#view.setBigUint64(at + 32, BigInt(size), true);
    return E.ok;
  }

  #path(fd: number, at: number, length: number): string | null {
    const open = this.#open.get(fd);
    return open?.file === null ? path(open.path, this.#text(at, length)) : null;
  }

  #entries(folder: string): [name: string, type: number][] {
    const inside = (name: string) => name !== "" && name.slice(0, Math.max(0, name.lastIndexOf("/"))) === folder;
    const last = (name: string) => name.slice(name.lastIndexOf("/") + 1);
    const folders = [...this.#folders].filter(inside), files = [...this.#files.keys()].filter(inside);
    return [...folders.map((name) => [last(name), FOLDER] as [string, number]), ...files.map((name) => [last(name), FILE] as [string, number])];
  }

  #read(fd: number, buffers: number, n: number, done: number): number {
    const open = this.#open.get(fd);
    if (fd !== 0 && !open) return E.badf;
    if (open?.file === null) return E.isdir;
    let sum = 0;
    for (const buffer of open?.file ? this.#buffers(buffers, n) : []) {
      const part = open!.file!.bytes.subarray(open!.at, Math.min(open!.at + buffer.length, open!.file!.size));
      buffer.set(part);
      open!.at += part.length;
      sum += part.length;
    }
    this.#view.setUint32(done, sum, true);
    return E.ok;
  }

  #write(fd: number, buffers: number, n: number, done: number): number {
    const open = this.#open.get(fd);
    if (fd !== 1 && fd !== 2 && !open?.file) return E.badf;
    let sum = 0;
    for (const buffer of this.#buffers(buffers, n)) {
      if (fd === 1 || fd === 2) this.#say(fd, buffer.slice());
      else append(open!, buffer);
      sum += buffer.length;
    }
    this.#view.setUint32(done, sum, true);
    return E.ok;
  }

  #say(fd: 1 | 2, bytes: Uint8Array): void {
    // The sequence that terminals take for progress, which strew writes in one piece.
    const told = fd === 2 && bytes.length < 20 ? /^\x1b]9;4;1;(\d+)\x07$/.exec(new TextDecoder().decode(bytes)) : null;
    if (told) this.#progress(Number(told[1]));
    else this.#said.push({ fd, bytes });
  }

  #pathOpen(name: string | null, how: number, flags: number, result: number): number {
    if (name === null) return E.badf;
    const [create, folder, only, empty] = [1, 2, 4, 8].map((bit) => (how & bit) !== 0);
    let file = this.#files.get(name) ?? null;
    const isFolder = this.#folders.has(name);
    if (file && folder) return E.notdir;
    if ((file || isFolder) && create && only) return E.exist;
    if (!file && !isFolder) {
      if (!create) return E.noent;
      file = { bytes: new Uint8Array(), size: 0, isWritten: true };
      this.#put(name, file);
    }
    if (file && empty) Object.assign(file, { size: 0, isWritten: true });
    let next = ROOT + 1;
    while (this.#open.has(next)) next += 1;
    this.#open.set(next, { path: name, file, at: 0, append: (flags & 1) !== 0 });
    this.#view.setUint32(result, next, true);
    return E.ok;
  }

  #seek(fd: number, offset: bigint, whence: number, result: number): number {
    const open = this.#open.get(fd);
    if (!open?.file) return E.badf;
    const from = [0, open.at, open.file.size][whence];
    const at = from === undefined ? -1 : from + Number(offset);
    if (at < 0) return E.inval;
    open.at = at;
    this.#view.setBigUint64(result, BigInt(at), true);
    return E.ok;
  }

  #folder(fd: number, at: number, length: number, cookie: bigint, used: number): number {
    const open = this.#open.get(fd);
    if (open?.file !== null) return E.notdir;
    const all = new Uint8Array(length);
    const view = new DataView(all.buffer);
    let end = 0, number = 0n;
    for (const [name, type] of this.#entries(open.path)) {
      number += 1n;
      if (number <= cookie) continue;
      const bytes = encoder.encode(name);
      // An entry that does not fit whole ends the list: the program asks again from there.
      if (end + 24 + bytes.length > length) { end = length; break; }
      view.setBigUint64(end, number, true);
      view.setUint32(end + 16, bytes.length, true);
      view.setUint8(end + 20, type);
      all.set(bytes, end + 24);
      end += 24 + bytes.length;
    }
    this.#bytes(at, length).set(all);
    this.#view.setUint32(used, end, true);
    return E.ok;
  }

  #rename(from: string | null, to: string | null): number {
    const file = from === null ? undefined : this.#files.get(from);
    if (!file || to === null) return E.noent;
    this.#files.delete(from!);
    this.#put(to, Object.assign(file, { isWritten: true }));
    return E.ok;
  }

  readonly #calls = new Map<string, (...values: never[]) => unknown>(Object.entries({
    args_sizes_get: (n: number, size: number) => this.#sizes(this.#arguments, n, size),
    args_get: (places: number, at: number) => this.#list(this.#arguments, places, at),
    environ_sizes_get: (n: number, size: number) => this.#sizes(this.#environment, n, size),
    environ_get: (places: number, at: number) => this.#list(this.#environment, places, at),
    clock_time_get: (clock: number, _: bigint, result: number) => {
      // 0 is the wall clock; both in nanoseconds.
      const milliseconds = clock === 0 ? Date.now() : performance.now();
      this.#view.setBigUint64(result, BigInt(Math.round(milliseconds * 1e6)), true);
      return E.ok;
    },
    random_get: (at: number, length: number) => {
      // Seeds of hash tables, whose order reaches no output: the same each time, so that each run is the same.
      this.#bytes(at, length).fill(7);
      return E.ok;
    },
    fd_close: (fd: number) => (this.#open.delete(fd) ? E.ok : E.badf),
    fd_read: (fd: number, at: number, n: number, done: number) => this.#read(fd, at, n, done),
    fd_write: (fd: number, at: number, n: number, done: number) => this.#write(fd, at, n, done),
    fd_seek: (fd: number, offset: bigint, whence: number, result: number) => this.#seek(fd, offset, whence, result),
    fd_readdir: (fd: number, at: number, length: number, cookie: bigint, used: number) => this.#folder(fd, at, length, cookie, used),
    fd_fdstat_get: (fd: number, at: number) => {
      const open = this.#open.get(fd);
      if (fd > 2 && !open) return E.badf;
      this.#bytes(at, 24).fill(0);
      // Standard streams are of no known type: no terminal.
      this.#view.setUint8(at, !open ? 0 : open.file ? FILE : FOLDER);
      this.#view.setBigUint64(at + 8, 0xffff_ffffn, true);
      this.#view.setBigUint64(at + 16, 0xffff_ffffn, true);
      return E.ok;
    },
    fd_fdstat_set_flags: () => E.ok,
    fd_filestat_get: (fd: number, at: number) => {
      const open = this.#open.get(fd);
      if (fd > 2 && !open) return E.badf;
      return this.#stat(at, !open ? 0 : open.file ? FILE : FOLDER, open?.file?.size ?? 0);
    },
    fd_prestat_get: (fd: number, at: number) => {
      if (fd !== ROOT) return E.badf;
      this.#view.setUint32(at, 0, true);
      this.#view.setUint32(at + 4, 1, true);
      return E.ok;
    },
    fd_prestat_dir_name: (fd: number, at: number) => {
      if (fd !== ROOT) return E.badf;
      this.#bytes(at, 1).set(encoder.encode("/"));
      return E.ok;
    },
    path_open: (fd: number, _: number, at: number, length: number, how: number, _rights: bigint, _inherited: bigint, flags: number, result: number) => (
      this.#pathOpen(this.#path(fd, at, length), how, flags, result)
    ),
    path_filestat_get: (fd: number, _: number, at: number, length: number, result: number) => {
      const name = this.#path(fd, at, length);
      const file = name === null ? undefined : this.#files.get(name);
      if (file) return this.#stat(result, FILE, file.size);
      return name !== null && this.#folders.has(name) ? this.#stat(result, FOLDER, 0) : E.noent;
    },
    path_rename: (fd: number, at: number, length: number, to: number, toAt: number, toLength: number) => (
      this.#rename(this.#path(fd, at, length), this.#path(to, toAt, toLength))
    ),
    path_unlink_file: (fd: number, at: number, length: number) => (this.#files.delete(this.#path(fd, at, length) ?? "") ? E.ok : E.noent),
    path_create_directory: (fd: number, at: number, length: number) => {
      const name = this.#path(fd, at, length);
      if (name === null) return E.badf;
      if (this.#files.has(name) || this.#folders.has(name)) return E.exist;
      this.#folders.add(name);
      return E.ok;
    },
    sched_yield: () => E.ok,
    // Of the library of C, where it lacks them: no thread starts, and no name is resolved (a null pointer).
    pthread_attr_init: () => E.ok,
    pthread_attr_setstacksize: () => E.ok,
    pthread_attr_destroy: () => E.ok,
    pthread_create: () => E.again,
    realpath: () => 0,
    proc_exit: (code: number) => { throw new Exit(code); },
  }));
}

const encoder = new TextEncoder();

/** A name from the root, without `.`, `..` and double slashes. */
export function path(folder: string, name: string): string {
  const parts: string[] = [];
  for (const part of (name.startsWith("/") ? name : `${folder}/${name}`).split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** Writes at the open file's place, or at its end. */
function append(open: Open, part: Uint8Array): void {
  const file = open.file!;
  const at = open.append ? file.size : open.at, end = at + part.length;
  if (end > file.bytes.length) {
    const bytes = new Uint8Array(Math.max(end, 2 * file.bytes.length));
    bytes.set(file.bytes.subarray(0, file.size));
    file.bytes = bytes;
  }
  file.bytes.set(part, at);
  file.size = Math.max(file.size, end);
  file.isWritten = true;
  open.at = end;
}

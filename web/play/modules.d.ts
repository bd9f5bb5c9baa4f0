// What the build puts in.

declare module "strew:worker" {
  /** The script of the worker. */
  const source: string;
  export default source;
}

declare module "strew:examples" {
  interface Example {
    title: string;
    command: string;
    files: [name: string, text: string][];
  }
  const examples: Example[];
  export default examples;
}

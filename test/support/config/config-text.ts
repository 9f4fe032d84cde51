/** Writes configurations for tests. */
export interface ConnectionText {
  readonly name: string;
  readonly type: string;
  readonly options?: Readonly<Record<string, TomlValue>>;
}

export type TomlValue =
  string | number | boolean | readonly TomlValue[] | { readonly [key: string]: TomlValue };

export interface ConfigParts {
  readonly connections: readonly ConnectionText[];
  readonly shares: readonly Readonly<Record<string, TomlValue>>[];
  /** Section → keys; sections may be dotted. */
  readonly sections: Readonly<Record<string, Readonly<Record<string, TomlValue>>>>;
}

function toml(value: TomlValue): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(toml).join(', ')}]`;
  if (typeof value === 'object')
    return `{ ${Object.entries(value)
      .map(([key, one]) => `${JSON.stringify(key)} = ${toml(one)}`)
      .join(', ')} }`;
  return String(value);
}

function table(header: string, values: Readonly<Record<string, TomlValue>>): string {
  return [header, ...Object.entries(values).map(([key, value]) => `${key} = ${toml(value)}`), ''].join('\n');
}

/** A configuration document as TOML, in the order: sections, connections, shares. */
export function configText(parts: ConfigParts): string {
  return [
    ...Object.entries(parts.sections).map(([name, values]) => table(`[${name}]`, values)),
    ...parts.connections.map((connection) => table('[[connections]]', { ...connection })),
    ...parts.shares.map((share) => table('[[shares]]', share)),
  ].join('\n');
}

/** Protocols that shares name, and the plugins that show shares by them. */
import type { Config, ConfigProblem } from '../../contract/config.ts';
import type { Notice } from '../../contract/notifications.ts';
import { USUAL_PROTOCOLS } from '../schema/core-schema.ts';
import { suggestion } from '../schema/did-you-mean.ts';

/** A protocol that a plugin provides as `exporter:<name>`, or says that it would if it were on. */
export interface ProtocolName {
  readonly name: string;
  readonly plugin: string;
  /** The plugin is loaded. */
  readonly isProvided: boolean;
  /** Known whether the plugin is on or off: what names it stays valid. */
  readonly isNameable: boolean;
}

/** Nobody reads more of these. */
const MOST_SAID = 20;

interface Named {
  readonly share: string;
  readonly path: string;
  readonly protocol: string;
}

function named(config: Config): readonly Named[] {
  return config.shares.flatMap(({ name, protocols }, index) =>
    protocols.map((protocol, at) => ({ share: name, path: `shares[${index}].protocols[${at}]`, protocol })),
  );
}

/** Names that stay valid whatever became of their plugins. */
function knownNames(protocols: readonly ProtocolName[]): ReadonlySet<string> {
  return new Set([...USUAL_PROTOCOLS, ...protocols.map(({ name }) => name)]);
}

function unknown(config: Config, protocols: readonly ProtocolName[]): (Named & { readonly said: string })[] {
  const known = knownNames(protocols);
  return named(config)
    .filter(({ protocol }) => !known.has(protocol))
    .map((one) => ({
      ...one,
      said: `share "${one.share}" names the protocol "${one.protocol}", which no plugin provides`,
    }));
}

/**
 * Names that nobody knows and that `current`, the running configuration, does not have yet. For documents
 * that somebody is just looking at: a plugin that is missing for a while must not stop the daemon.
 */
export function protocolProblems(
  config: Config,
  protocols: readonly ProtocolName[],
  current: Config | undefined,
): ConfigProblem[] {
  const known = [...knownNames(protocols)];
  const running = new Set(current?.shares.flatMap((share) => share.protocols));
  return unknown(config, protocols)
    .filter(({ protocol }) => !running.has(protocol))
    .slice(0, MOST_SAID)
    .map(({ path, protocol, said }) => ({
      path,
      message: `${said}${suggestion(protocol, known)}; there are ${known.join(', ')}`,
    }));
}

function unknownWarnings(config: Config, protocols: readonly ProtocolName[]): string[] {
  const known = knownNames(protocols);
  return unknown(config, protocols)
    .slice(0, MOST_SAID)
    .map(({ protocol, said }) => `${said}: it is not shown over that${suggestion(protocol, known)}`);
}

/** Tells of shares that are not shown over all protocols that they name. */
export function protocolNotice(config: Config, protocols: readonly ProtocolName[]): Notice | undefined {
  const said = unknownWarnings(config, protocols);
  return said.length === 0 ? undefined : { level: 'warning', message: said.join('. ') };
}

/**
 * What makes no document wrong: a protocol that no plugin provides, one whose plugin is off, and one that
 * nobody would know if its plugin were off. `written`: the document without what is filled in.
 */
export function protocolWarnings(
  config: Config,
  written: Readonly<Record<string, unknown>>,
  protocols: readonly ProtocolName[],
): string[] {
  const isWritten = new Set(
    (Array.isArray(written['shares']) ? (written['shares'] as { name?: unknown; protocols?: unknown }[]) : [])
      .filter((share) => Array.isArray(share.protocols))
      .map((share) => share.name),
  );
  const known = named(config)
    .filter(({ share }) => isWritten.has(share))
    .flatMap(({ share, protocol }) => {
      const of = protocols.filter(({ name }) => name === protocol);
      // The usual ones are those of the plugins of the same names.
      const plugin = of[0]?.plugin ?? (USUAL_PROTOCOLS.includes(protocol) ? protocol : undefined);
      if (plugin === undefined) return [];
      if (!of.some(({ isProvided }) => isProvided))
        return [
          `share "${share}" names the protocol "${protocol}" of the plugin "${plugin}", ` +
            `which is off or cannot be loaded: it is not shown over that`,
        ];
      return of.some(({ isNameable }) => isNameable)
        ? []
        : [
            `share "${share}" names the protocol "${protocol}", ` +
              `which nobody knows while the plugin "${plugin}" is off: ` +
              `its package.json should say "mountkeeper": { "protocols": ["${protocol}"] }`,
          ];
    });
  return [...unknownWarnings(config, protocols), ...known].slice(0, MOST_SAID);
}

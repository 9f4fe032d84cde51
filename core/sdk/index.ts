/**
 * The package's entrance, `mountkeeper`: everything that a plugin may use, in-tree or third-party. Interfaces
 * marked "open" are extended by declaration merging (`declare module 'mountkeeper' { … }`).
 */
import type { Plugin } from '../contract/plugin.ts';

export { default as Joi } from '#joi';
export { default as Boom } from '#boom';

export type * from '../contract/platform.ts';
export type * from '../contract/cli.ts';
export type * from '../contract/commands.ts';
export type * from '../contract/config.ts';
export type * from '../contract/connections.ts';
export type * from '../contract/config-changes.ts';
export type * from '../contract/dashboard.ts';
export type * from '../contract/exporter.ts';
export type * from '../contract/hooks.ts';
export type * from '../contract/metrics.ts';
export type * from '../contract/mount.ts';
export type * from '../contract/notifications.ts';
export type * from '../contract/plugin.ts';
export type * from '../contract/services.ts';
export type * from '../contract/shares.ts';
export type * from '../contract/status.ts';
export type * from '../contract/http.ts';
export type * from '../contract/write-layer.ts';

export { createClock } from '../platform/clock.ts';
export { cronProblem, nextCronTime } from '../platform/cron.ts';
export {
  endsWithin,
  limited,
  pause,
  rest,
  TimeBoxError,
  timeBox,
  timeBoxOr,
  unlessAborted,
  withGrace,
} from '../platform/deadline.ts';
export type { GraceOptions, LimitedOptions } from '../platform/deadline.ts';
export { syncFolder, writeWhole } from '../platform/files/atomic-file.ts';
export type { WriteWholeOptions } from '../platform/files/atomic-file.ts';
export { lessened } from '../platform/processes/lessened.ts';
export { leastRights, rootWith, SERVICE_USER, serviceUser } from '../platform/processes/rights.ts';
export type { RightsWanted, RootRightsWanted } from '../platform/processes/rights.ts';
export { createSemaphore } from '../platform/semaphore.ts';
export type { Semaphore, SemaphoreOptions } from '../platform/semaphore.ts';
export { createKeyedQueue, createSerialQueue } from '../platform/serial-queue.ts';
export type { KeyedQueue, SerialQueue } from '../platform/serial-queue.ts';
export { CacheFills } from './cache-fills.ts';
export type { CacheFill, CacheFillsOptions } from './cache-fills.ts';
export { conflictPath, secondPath } from './second-names.ts';
export type { ConflictNaming } from './second-names.ts';
export { createLatestQueue } from './latest.ts';
export type { LatestQueue } from './latest.ts';
export { certificateCheck } from '../platform/certificates/doctor.ts';
export type { CertificateQuestion } from '../platform/certificates/doctor.ts';
export { makeFolder } from '../platform/files/make-folder.ts';
export { keepReserve, releaseReserve, renewReserve, withReserve } from '../platform/files/reserve.ts';
export { lstatIfThere, undefinedWhenMissing } from '../platform/files/missing.ts';
export { refuseForeignFolder, refuseForeignPlace, refuseForeignWay } from '../platform/files/ownership.ts';
export { holdFolder } from '../platform/state-lock.ts';
export { firstAccessible } from '../platform/files/first-accessible.ts';
export { logIgnored } from '../platform/log/ignored.ts';
export { escapeUnprintable } from '../platform/log/unprintable.ts';

export { duration, filePath, onlyInFile, rate, secret, size, tls, MASK } from './config-types.ts';
export { durationMs, formatBytes, formatDuration, formatRate, rateBytes, sizeBytes } from './units.ts';
export { editToml, readToml } from './toml/edit.ts';
export { joinPath } from './toml/path.ts';
export { Fragment, h, html } from './html.ts';
export { actionForm, QUESTION } from './action-form.ts';
export type { ActionForm } from './action-form.ts';
export { inEveryLanguage, readDescriptions, readTexts } from './texts.ts';
export type { Texts } from './texts.ts';

export { isLoopback } from './http/address.ts';
export { isFromCommandSocket } from './http/command-connections.ts';
export { pathOf, safeBack } from './http/own-path.ts';
export { isAnybodyAsked, isEnough, openTo, principalOf, roleOf, sharesOf } from './http/route-access.ts';
export { documented } from './http/route-document.ts';
export type { RouteDocument } from './http/route-document.ts';
export { eventStream } from './http/event-stream.ts';
export type { EventSink, EventStreamOptions, StreamEvent } from './http/event-stream.ts';
export {
  addressKey,
  clientAddress,
  ConnectionPool,
  CredentialDigest,
  parseBasicCredentials,
  isEncrypted,
  isInClear,
  RefusedSignInCounts,
  SecureServer,
  Throttle,
  trustedProxies,
} from './standalone.ts';
export type {
  Attempt,
  BasicCredentials,
  ConnectionPoolOptions,
  RefusedAttempt,
  ThrottleOptions,
  TrustedProxies,
  Verdict,
} from './standalone.ts';

export { entranceOf, isShownOver, shareAccess } from './access.ts';
export type { Entrance, ShareAccess } from './access.ts';
export { exporterOf, provideExporter } from './servers/exporter.ts';
export type { ExporterParts, ExporterTools, ExporterWiring, ServingExporter } from './servers/exporter.ts';
export { createExportTable } from './servers/export-table.ts';
export type { ExportTable, ExportTableOptions } from './servers/export-table.ts';
export { manageServer } from './servers/managed-server.ts';
export type { ManagedServer, ManagedServerOptions } from './servers/managed-server.ts';
/** Former names of the same, kept for plugins that use them. */
export { createExportTable as showShares } from './servers/export-table.ts';
export type {
  ExportTable as ShownShares,
  ExportTableOptions as ShownSharesOptions,
} from './servers/export-table.ts';
export { manageServer as keepServer } from './servers/managed-server.ts';
export type {
  ManagedServer as KeptServer,
  ManagedServerOptions as KeptServerOptions,
} from './servers/managed-server.ts';
export { tcpClients } from './servers/tcp-clients.ts';
export type { TcpClient } from './servers/tcp-clients.ts';
export { untilAnswered } from './servers/until-answered.ts';
export type { AskedServer, Unanswered } from './servers/until-answered.ts';
export { addressProblem, askOnce, ownAddress, portProblem, spellingOf } from './servers/server-address.ts';
export type { AddressOrigin, Question, ServerAddress } from './servers/server-address.ts';

export { withRelease } from './with-release.ts';

export { reasonOf } from './reason-of.ts';

export { messageOf } from '../platform/log/thrown.ts';

/** A plugin as it is written: its version may stand in its package.json alone. */
export type PluginDefinition<C extends object = object> = Omit<Plugin<C>, 'version'> &
  Partial<Pick<Plugin<C>, 'version'>>;

/** Types the context by the plugin's configuration. Returns its argument. */
export function definePlugin<C extends object>(plugin: PluginDefinition<C>): Plugin<C> {
  // Whoever loads it adds what is missing.
  return plugin as Plugin<C>;
}

/**
 * `mountkeeper/sdk`: values for plugins' helper processes. All of it is in `mountkeeper` as well, which
 * would cost such a process 13 MB more memory.
 */
export { entranceOf } from './access.ts';
export type { Entrance, ShareAccess } from './access.ts';
export { CredentialDigest, parseBasicCredentials } from './http/basic-credentials.ts';
export type { BasicCredentials } from './http/basic-credentials.ts';
export { addressKey, clientAddress, trustedProxies } from './http/client-address.ts';
export type { TrustedProxies } from './http/client-address.ts';
export { ConnectionPool } from './http/connection-pool.ts';
export type { ConnectionPoolOptions } from './http/connection-pool.ts';
export { isEncrypted, isInClear, SecureServer } from './http/secure-server.ts';
export { Throttle } from './http/password-throttle.ts';
export type { Attempt, ThrottleOptions, Verdict } from './http/password-throttle.ts';
export { RefusedSignInCounts } from './servers/refused-sign-ins.ts';
export type { RefusedAttempt } from './servers/refused-sign-ins.ts';
export { writeWhole } from '../platform/files/atomic-file.ts';
export type { WriteWholeOptions } from '../platform/files/atomic-file.ts';
export { createKeyedQueue, createSerialQueue } from '../platform/serial-queue.ts';
export type { KeyedQueue, SerialQueue } from '../platform/serial-queue.ts';
export { endsWithin, pause, timeBox, timeBoxOr, unlessAborted } from '../platform/deadline.ts';
export { createClock } from '../platform/clock.ts';
export { undefinedWhenMissing } from '../platform/files/missing.ts';

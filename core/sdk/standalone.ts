/**
 * `mountkeeper/sdk`: what helper processes of plugins import as values. All of it is in `mountkeeper` as
 * well, which takes a process of its own 13 MB more.
 */
export { CredentialDigest, parseBasicCredentials } from './http/basic-credentials.ts';
export type { BasicCredentials } from './http/basic-credentials.ts';
export { addressKey, clientAddress, trustedProxies } from './http/client-address.ts';
export type { TrustedProxies } from './http/client-address.ts';
export { ConnectionPool } from './http/connection-pool.ts';
export type { ConnectionPoolOptions } from './http/connection-pool.ts';
export { Throttle } from './http/password-throttle.ts';
export type { Attempt, ThrottleOptions, Verdict } from './http/password-throttle.ts';
export { createSerialQueue } from '../platform/serial-queue.ts';
export type { SerialQueue } from '../platform/serial-queue.ts';
export { createClock } from '../platform/clock.ts';

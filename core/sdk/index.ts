/**
 * `mountkeeper/sdk`: what helper processes of plugins import as values. All of it is in `mountkeeper` as
 * well, which takes a process of its own 13 MB more.
 */
export { CredentialDigest, parseBasicCredentials } from './basic-credentials.ts';
export type { BasicCredentials } from './basic-credentials.ts';
export { addressKey, clientAddress, trustedProxies } from './client-address.ts';
export type { TrustedProxies } from './client-address.ts';
export { ConnectionPool } from './connection-pool.ts';
export type { ConnectionPoolOptions } from './connection-pool.ts';
export { Throttle } from './throttle.ts';
export type { Attempt, ThrottleOptions, Verdict } from './throttle.ts';
export { createClock } from '../system/clock.ts';

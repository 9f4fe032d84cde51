/**
 * `mountkeeper` in the daemon's own process. In the Debian package this file is one of a bundle; runners of third
 * parties' plugins import `index.ts` itself (`exports` in package.json).
 */
export * from './index.ts';

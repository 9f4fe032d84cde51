/** The header under which a browser saves a file (RFC 6266); the name is a stranger's text. */

const LONGEST_NAME = 200;

export function contentDisposition(name: string): string {
  // Characters that steer or hide: a name must not read as another one, and no header ends within it.
  const plain = name
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}/\\]/gu, '_')
    .slice(0, LONGEST_NAME)
    .replaceAll(/\p{Cs}/gu, '_');
  const ascii = plain.replaceAll(/[^A-Za-z0-9 ._-]/g, '_');
  const encoded = encodeURIComponent(plain).replaceAll(
    /['()*!]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}

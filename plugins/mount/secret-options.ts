import type { Config } from 'mountkeeper';
import type { Provider } from './providers.ts';
import { providerOf } from './providers.ts';

/**
 * Names that hold a secret in any backend. Older versions mark only passwords, and newer ones mark hosts and user names too,
 * which nobody wants masked; so the names decide, and what the installed rclone marks as a password is added to them.
 */
const SECRET_NAME = /(^|_)(pass|password|passphrase|password2|secret|token|cookies?|credentials|authorization)(_|$)|(^|_)key(_pem|_base64)?$|access_key|api_key|master_key|private_key|otp|salt|salted/;
/** Names that only sound like it: paths, addresses and switches. */
const PLAIN_NAME = /_file$|_url$|_agent$|_command$|_format$|_md5$|^(known_hosts_file|use_|disable_|env_auth|ask_password|pubkey|public_key)/;
/** Passwords that rclone wants obscured, where the installed one cannot be asked. */
const PASSWORD_NAME = /^(pass|password|password2|key_file_pass|plex_password|file_password|folder_password|api_password|link_password|library_key)$/;

export function isSecretOption(name: string): boolean {
  return SECRET_NAME.test(name) && !PLAIN_NAME.test(name);
}

/** True when rclone reads this option as an obscured password. */
export function isPasswordOption(providers: readonly Provider[] | undefined, type: string, name: string): boolean {
  const provider = providers && providerOf(providers, type);
  if (provider) return provider.options.some((option) => option.name === name && option.isPassword);
  return PASSWORD_NAME.test(name);
}

/** Paths in the document of connection options that are secret. Connection strings may carry passwords, so they count whole. */
export function secretPaths(config: Config): readonly string[] {
  return config.connections.flatMap((connection, index) =>
    Object.entries(connection.options ?? {})
      .filter(([name, value]) => isSecretOption(name) || PASSWORD_NAME.test(name) || isReference(value) || (typeof value === 'string' && carriesSecret(value)))
      .map(([name]) => `connections[${index}].options.${name}`));
}

function isReference(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/** `remote = ":sftp,host=nas,pass=…:photos"` */
function carriesSecret(value: string): boolean {
  return [...value.matchAll(/[,:]\s*([a-z0-9_]+)\s*=/gi)].some((match) => isSecretOption((match[1] ?? '').toLowerCase()));
}

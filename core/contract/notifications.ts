/** Contract of what people are told: events, formats of webhooks, notices, results of the doctor's checks. */
import type { Awaitable } from './platform.ts';

/** Something that people should hear of even when they are not looking at the dashboard. */
export interface NotificationEvent {
  /** Dotted, such as `nas.offline`. */
  readonly type: string;
  readonly severity: 'info' | 'warning' | 'error';
  /** One plain sentence. */
  readonly message: string;
  /** Names and figures for machines; never a secret. */
  readonly data: Readonly<Record<string, string | number | boolean | null>>;
  /** Events with equal keys are delivered once. */
  readonly key: string;
}

/** An event on its way to the receiver of a webhook. */
export interface WebhookEvent {
  readonly event: NotificationEvent;
  /** The same for every attempt. */
  readonly id: string;
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number;
  /** Name of this machine. */
  readonly host: string;
}

/** What is sent by POST. */
export interface WebhookMessage {
  /** 64 KiB at most. */
  readonly body: string;
  /** 20 at most, each of 1,000 printable ASCII characters; those of the connection itself are refused. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** How a receiver of webhooks wants to be told; `notifications.webhook_format` names it as `<plugin>/<name>`. */
export interface WebhookFormat {
  /** Lower-case letters, digits and hyphens. */
  readonly name: string;
  /** Asked at every attempt, 5 s at most; when it throws, the attempt has failed with its sentence. */
  readonly render: (event: WebhookEvent) => Awaitable<WebhookMessage>;
}

/** The service `webhookFormats`: the formats of all active plugins, for whoever sends. */
export interface WebhookFormatsService {
  /** As `<plugin>/<name>`. */
  names(): readonly string[];
  /** Rejects with a sentence when nobody gives the format, or what it made cannot be sent. */
  render(name: string, event: WebhookEvent): Promise<WebhookMessage>;
}

export interface Notice {
  readonly level: 'info' | 'warning' | 'error';
  readonly message: string;
}

/** One line of `mountkeeper doctor`. `advice` says what to do and is empty when all is well. */
export interface Check {
  readonly title: string;
  readonly result: 'ok' | 'warning' | 'error';
  readonly detail: string;
  readonly advice: string;
}

/** Contract of what people are told: events, notices, results of the doctor's checks. */

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
